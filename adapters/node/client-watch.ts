import type { Socket } from 'node:net'
import { http2StreamOf, type NodeRequest, type NodeResponse } from './protocols.ts'

/** Returns a signal that aborts when the client leaves: see {@link onClientLeft}. */
export function clientSignal(req: NodeRequest, res: NodeResponse): AbortSignal {
  const controller = new AbortController()
  onClientLeft(req, res, () =>
    controller.abort(new DOMException('The client closed the connection', 'AbortError')),
  )
  return controller.signal
}

/**
 * Calls back, perhaps more than once, when the client leaves before it has the whole response. A signal for
 * each of thousands of followers would take more memory than their connections.
 *
 * Over HTTP/2 that is a reset or a lost connection. Over HTTP/1.1 a client that leaves and one that only
 * half-closes look the same (a FIN) until something is written. A FIN therefore calls back at once, which
 * ends whatever waits, but the connection stays open for a response that is ready or nearly so.
 */
export function onClientLeft(req: NodeRequest, res: NodeResponse, leave: () => void): void {
  const stream = http2StreamOf(res)
  const outlet = stream ?? res
  let stopWatching = () => {}
  const onClose = () => {
    stopWatching()
    if (!outlet.writableFinished) leave()
  }
  const onEnd = () => {
    if (!res.writableEnded) leave()
  }
  outlet.once('close', onClose)
  if (stream) stream.once('aborted', leave)
  // A pipelined response that waits for its turn has no socket yet, and emits no `close` when the connection
  // is lost.
  else stopWatching = watchSocket(req.socket, { onEnd, onClose })
  if (outlet.destroyed || req.socket.destroyed) onClose()
}

interface SocketWatcher {
  readonly onEnd: () => void
  readonly onClose: () => void
}

const watchersOf = new WeakMap<Socket, Set<SocketWatcher>>()

/**
 * Watches a socket, with one listener for all its pipelined requests. Calls `onEnd` at once if the peer has
 * half-closed before.
 */
function watchSocket(socket: Socket, watcher: SocketWatcher): () => void {
  if (socket.readableEnded) watcher.onEnd()
  const watchers = watchersOf.get(socket) ?? listen(socket)
  watchers.add(watcher)
  return () => watchers.delete(watcher)
}

function listen(socket: Socket): Set<SocketWatcher> {
  const watchers = new Set<SocketWatcher>()
  watchersOf.set(socket, watchers)
  socket.once('end', () => {
    for (const watcher of watchers) watcher.onEnd()
  })
  socket.once('close', () => {
    for (const watcher of watchers) watcher.onClose()
  })
  return watchers
}
