import { writeSync } from 'node:fs'
import { parentPort } from 'node:worker_threads'
import { filesystem } from '../../../../adapters/storage/filesystem/index.ts'
import { systemClock } from '../../../../src/runtime/clock.ts'

const [directory, how] = process.argv.slice(2)

/** Opens the directory, reports the outcome, and holds it until it is killed or its input ends. */
try {
  const session = await filesystem(directory!).open({ clock: systemClock, onLogChanged: () => {} })
  if (parentPort === null) writeSync(1, 'open\n')
  // A worker that listens for messages stays.
  else parentPort.on('message', () => {}).postMessage('open')
  const end = how === 'exit-when-told' ? () => process.exit() : () => void session.close()
  if (how !== 'worker') process.stdin.resume().on('end', end)
} catch (error) {
  const told = `${(error as { kind?: string }).kind}: ${(error as Error).message}`
  if (parentPort === null) writeSync(1, `${told}\n`)
  else parentPort.postMessage(told)
}
