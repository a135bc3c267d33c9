// Opens a directory and appends until it is killed. Prints each acknowledgement.
import { writeSync } from 'node:fs'
import { filesystem } from '../../dist/filesystem.js'
import { open } from '../../dist/index.js'

const hw = await open({ storage: filesystem(process.argv[2]) })
const stream = hw.basin('my-app').stream('killed')
for (let number = 0; ; number++) {
  const { end } = await stream.append(`record ${number}`)
  writeSync(1, `${end.seqNum}\n`)
}
