import { once } from 'node:events'
import { createServer } from 'node:net'

/**
 * Below the ports that systems give to connections, and to servers that leave the choice to them. Each worker
 * has ports of its own.
 */
const FIRST = 16_384
const RUNS = 8
const WORKERS_OF_RUN = 8
const PORTS_OF_WORKER = 256
/** Runs at the same time have different numbers in `TEST_PORTS`. */
const run = Number(process.env.TEST_PORTS ?? 0) % RUNS
const worker = Number(process.env.VITEST_POOL_ID ?? process.pid) % WORKERS_OF_RUN
const FIRST_OF_WORKER = FIRST + (run * WORKERS_OF_RUN + worker) * PORTS_OF_WORKER
let next = 0

/**
 * Returns a free port of this machine for a server that is started later or again. Nobody else is given it
 * while the server is down, as one that `listen(0)` has chosen may be.
 */
export async function reservedPort(): Promise<number> {
  for (;;) {
    const port = FIRST_OF_WORKER + (next++ % PORTS_OF_WORKER)
    if (await isFree(port)) return port
  }
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer().listen(port, '127.0.0.1')
  const failed = await once(server, 'listening').then(
    () => false,
    () => true,
  )
  if (failed) return false
  server.close()
  await once(server, 'close')
  return true
}
