import { writeSync } from 'node:fs'
import { parentPort } from 'node:worker_threads'
import { filesystem } from '../../../../adapters/storage/filesystem/index.ts'
import { systemClock } from '../../../../src/runtime/clock.ts'

const [directory, mode] = process.argv.slice(2)

/** Opens the directory, reports the outcome, and holds it until it is killed or its input ends. */
try {
  const session = await filesystem(directory!).open({ clock: systemClock, onLogChanged: () => {} })
  if (parentPort === null) writeSync(1, 'open\n')
  // A worker that listens for messages stays.
  else parentPort.on('message', () => {}).postMessage('open')
  const end = mode === 'exit-when-told' ? () => process.exit() : () => void session.close()
  if (mode !== 'worker') process.stdin.resume().on('end', end)
} catch (error) {
  const message = `${(error as { kind?: string }).kind}: ${(error as Error).message}`
  if (parentPort === null) writeSync(1, `${message}\n`)
  else parentPort.postMessage(message)
}
