import { writeSync } from 'node:fs'
import { filesystem } from '../../../../adapters/storage/filesystem/index.ts'
import { systemClock } from '../../../../src/engine/system-clock.ts'

/** Opens the directory, tells how that came out, and keeps it until it is killed or its input ends. */
try {
  const session = await filesystem(process.argv[2]!).open({ clock: systemClock, onLogChanged: () => {} })
  writeSync(1, 'open\n')
  process.stdin.resume().on('end', () => void session.close())
} catch (error) {
  writeSync(1, `${(error as { kind?: string }).kind}: ${(error as Error).message}\n`)
}
