import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Orders } from './play.ts'
import type { Report } from './report.ts'

/** A scenario that comes to no end must not hold up the run: it is a failure like others. */
const LASTS_MS_MAX = 600_000
const OUTPUT_CHARACTERS_MAX = 4_000

/** Plays a scenario in a process of its own, where nothing else is collected or open. Rejects with what it says when it fails. */
export async function runChild(program: string, orders: Orders): Promise<Report> {
  // Threads that collect and compile beside it would make what is in use a matter of chance.
  const options = [
    '--expose-gc',
    '--single-threaded',
    '--enable-source-maps',
    program,
    JSON.stringify(orders),
  ]
  const child = spawn(process.execPath, options, { stdio: ['ignore', 'pipe', 'pipe'] })
  const timer = setTimeout(() => child.kill('SIGKILL'), LASTS_MS_MAX)
  const output: Buffer[] = []
  let said = ''
  child.stdout.on('data', (chunk: Buffer) => output.push(chunk))
  child.stderr.on('data', (chunk: Buffer) => {
    said = (said + String(chunk)).slice(-OUTPUT_CHARACTERS_MAX)
  })
  const [code, signal] = await once(child, 'close')
  clearTimeout(timer)
  if (code !== 0) throw new Error(`it ends with ${signal ?? code}\n${said}`)
  return JSON.parse(Buffer.concat(output).toString())
}
