import { connect, type Socket } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import type { Prepared } from '../harness/host.ts'
import { encodeRequest, type Request } from './http.ts'

/** Occurs in each record once and nowhere else, so that deliveries are counted without parsing. */
export const MARK = '~'
const MARK_BYTE = MARK.charCodeAt(0)
/** 40 records a second. */
const INTERVAL_MS = 25

interface Fanout {
  readonly port: number
  readonly followers: number
  readonly follow: Request
  readonly append: Request
}

/** Sends records at a steady rate. The units are deliveries. */
export async function fanout({ port, followers, follow, append }: Fanout): Promise<Prepared> {
  let missing = 0
  let done = () => {}
  const deliver = (length: number, chunk: Buffer) => {
    for (let at = chunk.indexOf(MARK_BYTE); at >= 0 && at < length; at = chunk.indexOf(MARK_BYTE, at + 1)) {
      if (--missing === 0) done()
    }
  }
  const sockets = await openFollowers(port, followers, follow, deliver)
  let appender: Socket | undefined
  const request = encodeRequest(append)
  return {
    // Connects again, because the connection was idle while another side took its turn.
    reset() {
      appender?.destroy()
      appender = connect(port, '127.0.0.1').resume()
    },
    async turn(count) {
      missing = count * followers
      const delivered = new Promise<void>((resolve) => {
        done = resolve
      })
      for (let i = 0; i < count; i++) {
        appender!.write(request)
        await setTimeout(INTERVAL_MS)
      }
      await delivered
      return count * followers
    },
    close() {
      for (const socket of sockets) socket.destroy()
      appender?.destroy()
    },
  }
}

/** Resolves when each has received the beginning of its response. */
async function openFollowers(
  port: number,
  count: number,
  follow: Request,
  receive: (length: number, chunk: Buffer) => void,
): Promise<Socket[]> {
  const sockets: Socket[] = []
  // The kernel drops connections beyond its queue, so they are opened one after the other.
  for (let i = 0; i < count; i++) {
    sockets.push(await openFollower(port, encodeRequest(follow), receive))
  }
  return sockets
}

/** One buffer for all followers, because only the count matters. */
const shared = Buffer.alloc(256 * 1024)

function openFollower(
  port: number,
  request: Buffer,
  receive: (length: number, chunk: Buffer) => void,
): Promise<Socket> {
  return new Promise((resolve, reject) => {
    let isOpen = false
    const callback = (length: number, chunk: Buffer) => {
      if (!isOpen && chunk.toString('latin1', 9, 12) !== '200')
        reject(new Error(chunk.toString('latin1', 0, length)))
      isOpen = true
      resolve(socket)
      receive(length, chunk)
      return true
    }
    const socket = connect({
      port,
      host: '127.0.0.1',
      onread: { buffer: shared, callback: callback as never },
    })
    socket.once('error', reject).write(request)
  })
}
