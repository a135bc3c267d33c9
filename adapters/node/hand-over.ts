import type { Http2Server } from 'node:http2'
import type { Socket } from 'node:net'

/** Lets an HTTP/2 server take a socket of which `received` has been read already. */
export function handOverToHttp2(server: Http2Server, socket: Socket, received?: Buffer): void {
  // Half-closing is for HTTP/1.1. An HTTP/2 session would not notice that its client has gone.
  socket.allowHalfOpen = false
  if (received) socket.unshift(received)
  server.emit('connection', socket)
}

/** Lets the connection listener of an HTTP/1.1 server take a socket of which `received` has been read already. */
export function handOverToHttp1(listener: (socket: Socket) => void, socket: Socket, received: Buffer): void {
  listener(socket)
  // Not by `unshift`: bytes that fill the request's buffer while the socket is about to resume make Node lose the pause that follows,
  // and with it all back-pressure of the upload. When `resume` comes, nothing else has been read yet.
  socket.once('resume', () => socket.emit('data', received))
  socket.resume()
}
