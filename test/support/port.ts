import { once } from 'node:events'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Below the ports that systems give to connections, and to servers that leave the choice to them. */
const FIRST = 16_384
const PORTS = 16_384

/** Processes start far from each other, so that they seldom try the same port. */
let next = process.pid * 64
const claims: string[] = []
process.on('exit', () => {
  for (const claim of claims) rmSync(claim, { force: true })
})

/**
 * Returns a free port of this machine for a server that is started later or again. Nobody else is given it
 * while the server is down, as one that `listen(0)` has chosen may be: until the process ends, a file in the
 * temporary directory keeps it from other workers and other runs.
 */
export async function reservedPort(): Promise<number> {
  for (let tried = 0; tried < PORTS; tried++) {
    const port = FIRST + (next++ % PORTS)
    if (claim(port) && (await isFree(port))) return port
  }
  throw new Error(`no port from ${FIRST} to ${FIRST + PORTS - 1} is free`)
}

function claim(port: number): boolean {
  const path = join(tmpdir(), `headwater-port-${port}`)
  if (!create(path)) {
    removeAbandoned(path)
    if (!create(path)) return false
  }
  claims.push(path)
  return true
}

/** Removes the claim of a process that was killed. */
function removeAbandoned(path: string): void {
  // One process at a time, or a second one would remove the new claim of the first.
  const removal = `${path}-removal`
  if (!create(removal)) return
  try {
    if (!isAlive(Number(readFileSync(path, 'utf8')))) rmSync(path)
  } catch {
    // Its process has removed it, or another user owns it.
  } finally {
    rmSync(removal)
  }
}

/** Returns whether this process has created the file, which names it. */
function create(path: string): boolean {
  try {
    writeFileSync(path, `${process.pid}`, { flag: 'wx' })
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
}

function isAlive(pid: number): boolean {
  // A claim that is being written is empty.
  if (pid === 0) return true
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
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
