import { connect, type Socket } from 'node:net'
import type { Prepared } from '../harness/host.ts'

/** Returns the missing bytes of a response, given its first part, or undefined if they are not known yet. */
export type MissingBytes = (start: Buffer) => number | undefined

export interface Address {
  readonly port?: number
  readonly path?: string
}

/**
 * Connections that each send the same bytes again as soon as the response has arrived. They are sockets
 * without a parser, so that the load costs less than any server.
 */
export function closedLoop(
  address: Address,
  connections: number,
  request: Buffer,
  missingBytes: MissingBytes,
): Prepared {
  let sockets: Socket[] = []
  let remaining = 0
  let missing = 0
  let done = () => {}
  const begin = (socket: Socket) => {
    if (remaining-- > 0) socket.write(request)
  }
  const complete = (socket: Socket) => {
    if (--missing === 0) done()
    else begin(socket)
  }
  const close = () => {
    for (const socket of sockets) socket.destroy()
  }
  return {
    // Connects again, because servers close connections that were idle while another side took its turn.
    async reset() {
      close()
      sockets = await Promise.all(
        Array.from({ length: connections }, () => openSocket(address, missingBytes, complete)),
      )
    },
    turn(count) {
      remaining = missing = count
      return new Promise<void>((resolve, reject) => {
        done = resolve
        for (const socket of sockets) {
          socket.once('close', () => reject(new Error('the server closed a connection')))
          begin(socket)
        }
      })
    },
    close,
  }
}

function openSocket(
  { port, path }: Address,
  missingBytes: MissingBytes,
  complete: (socket: Socket) => void,
): Promise<Socket> {
  let start: Buffer | undefined
  let missing: number | undefined
  const receive = (length: number, chunk: Buffer) => {
    if (missing === undefined) {
      const part = chunk.subarray(0, length)
      const whole = start === undefined ? part : Buffer.concat([start, part])
      missing = missingBytes(whole)
      // The buffer is reused.
      start = missing === undefined ? Buffer.from(whole) : undefined
    } else missing -= length
    if (missing === 0) {
      missing = undefined
      complete(socket)
    }
    return true
  }
  const onread = { buffer: Buffer.alloc(256 * 1024), callback: receive as never }
  const socket = connect({ ...(path === undefined ? { port: port!, host: '127.0.0.1' } : { path }), onread })
  socket.setNoDelay(true)
  return new Promise((resolve, reject) => {
    socket.once('connect', () => resolve(socket)).once('error', reject)
  })
}
