import { subscribe } from 'node:diagnostics_channel'
import type { Socket } from 'node:net'

/** Both ends of the connections between clients and servers of this process, by the port of the client. */
const clientEnds = new Set<Socket>()
const serverEnds = new Map<number, Socket>()

subscribe('net.client.socket', (message) => {
  const { socket } = message as { readonly socket: Socket }
  clientEnds.add(socket)
  socket.once('close', () => clientEnds.delete(socket))
})
subscribe('net.server.socket', (message) => {
  const { socket } = message as { readonly socket: Socket }
  const port = socket.remotePort!
  serverEnds.set(port, socket)
  socket.once('close', () => {
    if (serverEnds.get(port) === socket) serverEnds.delete(port)
  })
})

/** The number of connections on which bytes are under way, or that are being opened or closed. */
export function busySockets(): number {
  let busy = 0
  for (const client of clientEnds) {
    const server = client.localPort === undefined ? undefined : serverEnds.get(client.localPort)
    const isIdle =
      server !== undefined && sentBy(client) === receivedBy(server) && sentBy(server) === receivedBy(client)
    if (!isIdle) busy++
  }
  return busy
}

/** HTTP/2 and the HTTP/1.1 parser read and write without the socket, whose handle counts all bytes. */
interface Handle {
  readonly bytesRead: number
  readonly bytesWritten: number
}

const handleOf = (socket: Socket) => (socket as unknown as { readonly _handle: Handle | null })._handle
const sentBy = (socket: Socket) => handleOf(socket)?.bytesWritten ?? socket.bytesWritten
const receivedBy = (socket: Socket) => handleOf(socket)?.bytesRead ?? socket.bytesRead
