import { once } from 'node:events'
import { createServer } from 'node:net'

/** Below the ports that systems give to connections, and to servers that leave the choice to them. */
const [FIRST, LAST] = [16_384, 32_767]

/**
 * Returns a free port of this machine for a server that is started later or again. Nobody else is given it
 * while the server is down, as one that `listen(0)` has chosen may be.
 */
export async function reservedPort(): Promise<number> {
  for (;;) {
    const port = FIRST + Math.floor(Math.random() * (LAST - FIRST + 1))
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
