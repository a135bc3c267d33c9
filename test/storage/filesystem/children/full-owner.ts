import { writeSync } from 'node:fs'
import { filesystem } from '../../../../adapters/storage/filesystem/index.ts'
import { HeadwaterError, open } from '../../../../src/index.ts'
import { limitDisk } from '../limited-disk.ts'

const [directory, capacity] = process.argv.slice(2)

/** Opens the directory, fills its disk, trims one record after the other, and reports each step. */
const disk = limitDisk(directory!)
disk.capacity = Number(capacity)
const hw = await open({ storage: filesystem(directory!), onBackgroundError: () => {} })
const stream = hw.basin('basin').stream('stream')
let tail = (await stream.checkTail().catch(() => undefined))?.seqNum ?? 0
writeSync(1, `open at ${tail}\n`)
try {
  for (;;) tail = (await stream.append('x'.repeat(50_000))).end.seqNum
} catch (error) {
  writeSync(1, `${HeadwaterError.is(error) ? error.code : error} at ${tail}\n`)
}
try {
  for (let point = 1; ; point++) {
    await stream.trim(point)
    writeSync(1, `trimmed ${point}\n`)
  }
} catch {
  process.stdin.resume()
}
