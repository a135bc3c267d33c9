import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { reservedPort } from '../support/port.ts'
import type { program } from './program.ts'

/** A server on disk that can be killed and started again at the same address. */
export interface KillableServer {
  readonly url: string
  /** Resolves when the process has ended. */
  kill(): Promise<void>
  /** Resolves when the server listens. */
  start(): Promise<void>
}

/** Starts `headwater serve` on a new directory, with further arguments. It is killed after the test. */
export async function killableServer(
  headwater: ReturnType<typeof program>,
  ...args: readonly string[]
): Promise<KillableServer> {
  const port = await reservedPort()
  const directory = join(headwater.directory, `data-${port}`)
  const command = ['serve', '--storage', directory, '--port', String(port), '--no-auth', ...args]
  let child: ChildProcess | undefined
  const kill = async () => {
    child!.kill('SIGKILL')
    if (child!.exitCode === null && child!.signalCode === null) await once(child!, 'exit')
  }
  const start = async () => {
    const starting = headwater.start(command)
    child = starting
    for await (const chunk of starting.stdout!) if (String(chunk).includes('http:')) break
    starting.stdout!.resume()
  }
  await start()
  onTestFinished(kill)
  return { url: `http://127.0.0.1:${port}`, kill, start }
}
