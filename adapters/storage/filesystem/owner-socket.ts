import { open, rename, stat, unlink } from 'node:fs/promises'
import { createConnection, createServer, type Server } from 'node:net'
import { join } from 'node:path'

/**
 * A socket in the directory, on which its owner listens: the system stops that when the process ends, however it ends, and whoever runs on the same
 * kernel and sees the same file can ask, from whatever container. Numbers of processes mean nothing there.
 */
export interface OwnerSocket {
  /** Of the file system, as this kernel numbers it. */
  readonly device: number
  close(): Promise<void>
}

/** What the system takes for the address of a socket, its end included, is 108 bytes. */
const ADDRESS_BYTES_MAX = 107

/** Undefined where there can be none: on a file system without sockets, or on systems other than Linux, which do not tell their start. */
export async function listenAsOwner(directory: string, name: string): Promise<OwnerSocket | undefined> {
  if (process.platform !== 'linux') return undefined
  const server = createServer((connection) => connection.destroy())
  try {
    // A worker that ends removes a socket by its first name. It has to stay as long as the owner's file, to be found without a listener.
    const firstName = `${name}.tmp`
    await withAddress(directory, firstName, (address) => listen(server, address))
    await rename(join(directory, firstName), join(directory, name))
    const { dev } = await stat(directory)
    return { device: dev, close: () => close(server, join(directory, name)) }
  } catch {
    await close(server, join(directory, name)).catch(() => {})
    return undefined
  }
}

/** Whether nobody listens, for certain: on the file system with this number, on the kernel that runs this. */
export async function isForsaken(directory: string, name: string, device: number): Promise<boolean> {
  try {
    if ((await stat(directory)).dev !== device) return false
    return await withAddress(directory, name, isRefused)
  } catch {
    return false
  }
}

/** Paths of any length: the system finds the directory by its descriptor. */
async function withAddress<Result>(
  directory: string,
  name: string,
  use: (address: string) => Promise<Result>,
): Promise<Result> {
  const path = join(directory, name)
  if (Buffer.byteLength(path) <= ADDRESS_BYTES_MAX) return use(path)
  const handle = await open(directory, 'r')
  try {
    return await use(`/proc/self/fd/${handle.fd}/${name}`)
  } finally {
    await handle.close()
  }
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

/** Only a socket without a listener refuses: one whose process is stopped or busy does not. */
function isRefused(address: string): Promise<boolean> {
  return new Promise((resolve) => {
    const connection = createConnection(address)
    connection.once('connect', () => {
      connection.destroy()
      resolve(false)
    })
    connection.once('error', (error: NodeJS.ErrnoException) => resolve(error.code === 'ECONNREFUSED'))
  })
}

async function close(server: Server, path: string): Promise<void> {
  await new Promise<void>((resolve) => server.close(() => resolve()))
  await unlink(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error
  })
}
