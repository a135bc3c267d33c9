import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { NodeResponse } from './protocols.ts'

/** The replies of Node's own server. */
const STATUS_LINES: Readonly<Record<string, string>> = {
  HPE_HEADER_OVERFLOW: '431 Request Header Fields Too Large',
  HPE_CHUNK_EXTENSIONS_OVERFLOW: '413 Payload Too Large',
  ERR_HTTP_REQUEST_TIMEOUT: '408 Request Timeout',
}

export interface ClientErrorOptions {
  /** The incomplete responses of a connection. */
  readonly responsesOf: (socket: Socket) => ReadonlySet<NodeResponse>
  /** How long to wait for the responses to earlier requests, in milliseconds. */
  readonly answerMs: number
  /** How long a client may send on after the last response, in milliseconds. */
  readonly lingerMs: number
}

/**
 * Returns a listener of `clientError` of an HTTP/1.1 server, which replies to what is not HTTP. Earlier
 * requests of the connection are answered first: by default Node drops their responses, although an append
 * may be durable, and its own 400 would look like the response of the append.
 */
export function clientErrorListener(options: ClientErrorOptions): (error: Error, socket: Socket) => void {
  const { responsesOf, answerMs, lingerMs } = options
  /** Each further chunk that arrives is an error again. */
  const failed = new WeakSet<Socket>()

  return (error, socket) => {
    if (failed.has(socket)) return
    failed.add(socket)
    const awaited = new Set([...responsesOf(socket)].filter(isAnswerable))
    if (awaited.size === 0) {
      reply(error, socket)
      socket.destroy(error)
      return
    }
    if (socket.destroyed) return
    const timer = setTimeout(() => socket.destroy(error), answerMs)
    socket.once('close', () => clearTimeout(timer))
    for (const res of awaited) {
      res.once('close', () => {
        awaited.delete(res)
        if (awaited.size > 0) return
        clearTimeout(timer)
        // It may have ended the responses by closing.
        if (socket.destroyed) return
        reply(error, socket)
        linger(socket, lingerMs)
      })
    }
  }
}

/** Whether the request is complete, and its response no session that was begun. */
function isAnswerable(res: NodeResponse): boolean {
  return res.req.complete && (!res.headersSent || res.writableEnded)
}

function reply(
  { code }: NodeJS.ErrnoException,
  socket: Socket & { _httpMessage?: ServerResponse | null | undefined },
): void {
  // A response that has begun cannot be followed by another one.
  if (!socket.writable || code === 'ECONNRESET' || socket._httpMessage?.headersSent) return
  const statusLine = STATUS_LINES[code ?? ''] ?? '400 Bad Request'
  socket.write(`HTTP/1.1 ${statusLine}\r\nConnection: close\r\n\r\n`)
}

/**
 * Closing a connection with unread data makes the kernel reset it, which could cost the client a response.
 */
function linger(socket: Socket, lingerMs: number): void {
  const timer = setTimeout(() => socket.destroy(), lingerMs)
  socket.once('close', () => clearTimeout(timer))
  socket.end()
  socket.resume()
}
