import { lstat, rename, unlink } from 'node:fs/promises'
import { createConnection, createServer, type Server } from 'node:net'
import { join } from 'node:path'
import type { PinnedDirectory } from '../files/pinned-directory.ts'
import type { ProbeResult } from './owner.ts'

/**
 * A socket in the directory on which its owner listens. The system closes it when the process ends, for any
 * reason. Every process on the same kernel that sees the file can probe it, from any container, where pids
 * mean nothing.
 */
interface OwnerSocket {
  close(): Promise<void>
}

/** The system's limit for a socket address is 108 bytes with its terminator; longer ones are truncated. */
const ADDRESS_BYTES_MAX = 107

/**
 * Returns undefined where sockets are not supported: on some file systems, and on systems other than Linux,
 * which do not provide a boot id.
 */
export async function openOwnerSocket(
  directory: PinnedDirectory,
  name: string,
): Promise<OwnerSocket | undefined> {
  if (process.platform !== 'linux') return undefined
  const server = createServer((connection) => connection.destroy())
  try {
    await directory.use(async (path) => {
      // A worker that ends removes the socket by its first name. The socket must stay as long as the owner
      // file, to be found without a listener.
      const firstName = `${name}.tmp`
      await listen(server, addressOf(path, firstName))
      await rename(join(path, firstName), join(path, name))
    })
    return { close: () => close(server, directory, name) }
  } catch {
    await close(server, directory, name).catch(() => {})
    return undefined
  }
}

/** `refused`: no process on this kernel is listening. */
export async function probeOwnerSocket(directory: PinnedDirectory, name: string): Promise<ProbeResult> {
  try {
    return await directory.use(async (path) => {
      // A copy of a socket, a plain file for example, refuses too.
      if (!(await lstat(join(path, name))).isSocket()) return 'none'
      return connect(addressOf(path, name))
    })
  } catch {
    return 'none'
  }
}

function addressOf(path: string, name: string): string {
  const address = join(path, name)
  if (Buffer.byteLength(address) > ADDRESS_BYTES_MAX) throw new Error(`${address} is too long for a socket`)
  return address
}

function listen(server: Server, address: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    // Without `exclusive`, the primary process of a cluster would listen, and outlive its worker.
    server.listen({ path: address, exclusive: true }, () => {
      // From here on, a probe that fails because descriptors are used up is answered the next time.
      server.off('error', reject).on('error', () => {})
      server.unref()
      resolve()
    })
  })
}

/**
 * A stopped or busy process still accepts, up to the backlog; a full backlog (EAGAIN) proves that it is
 * alive.
 */
function connect(address: string): Promise<ProbeResult> {
  return new Promise((resolve) => {
    const connection = createConnection(address)
    connection.once('connect', () => {
      connection.destroy()
      resolve('accepted')
    })
    connection.once('error', ({ code }: NodeJS.ErrnoException) => {
      resolve(code === 'EAGAIN' ? 'accepted' : code === 'ECONNREFUSED' ? 'refused' : 'none')
    })
  })
}

async function close(server: Server, directory: PinnedDirectory, name: string): Promise<void> {
  await new Promise<void>((resolve) => server.close(() => resolve()))
  await directory
    .use((path) => unlink(join(path, name)))
    .catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT' && error.code !== 'ESTALE') throw error
    })
}
