import { lstat, rename, unlink } from 'node:fs/promises'
import { createConnection, createServer, type Server } from 'node:net'
import { join } from 'node:path'
import type { SocketAnswer } from './owner-liveness.ts'
import type { PinnedDirectory } from './pinned-directory.ts'

/**
 * A socket in the directory, on which its owner listens: the system stops that when the process ends, however it ends, and whoever runs on the same
 * kernel and sees the same file can ask, from whatever container. Numbers of processes mean nothing there.
 */
export interface OwnerSocket {
  close(): Promise<void>
}

/** What the system takes for the address of a socket, its end included, is 108 bytes; a longer one would be cut off. */
const ADDRESS_BYTES_MAX = 107

/** Undefined where there can be none: on a file system without sockets, or on systems other than Linux, which do not tell their start. */
export async function listenAsOwner(
  directory: PinnedDirectory,
  name: string,
): Promise<OwnerSocket | undefined> {
  if (process.platform !== 'linux') return undefined
  const server = createServer((connection) => connection.destroy())
  try {
    await directory.use(async (path) => {
      // A worker that ends removes a socket by its first name. It has to stay as long as the owner's file, to be found without a listener.
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

/** `refused`: nobody on this kernel listens. */
export async function askOwner(directory: PinnedDirectory, name: string): Promise<SocketAnswer> {
  try {
    return await directory.use(async (path) => {
      // What a copy made of a socket, a plain file say, refuses too.
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
    // A worker of a cluster would have its first process listen, which outlives it.
    server.listen({ path: address, exclusive: true }, () => {
      // From now on, who asks while the descriptors are used up is heard the next time.
      server.off('error', reject).on('error', () => {})
      server.unref()
      resolve()
    })
  })
}

/** A process that is stopped or busy accepts all the same, up to a number of connections; then it is there to be asked again (EAGAIN). */
function connect(address: string): Promise<SocketAnswer> {
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
