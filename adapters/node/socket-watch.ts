import type { Socket } from 'node:net'

export interface SocketWatcher {
  /** The peer has half-closed. */
  readonly onEnd?: () => void
  readonly onClose?: () => void
}

const watchersOf = new WeakMap<Socket, Set<SocketWatcher>>()

/**
 * Watches a socket, also for an end that has come before. One listener per socket, however many pipelined requests it carries. The
 * function returned stops.
 */
export function watchSocket(socket: Socket, watcher: SocketWatcher): () => void {
  if (socket.readableEnded) watcher.onEnd?.()
  const watchers = watchersOf.get(socket) ?? listen(socket)
  watchers.add(watcher)
  return () => watchers.delete(watcher)
}

function listen(socket: Socket): Set<SocketWatcher> {
  const watchers = new Set<SocketWatcher>()
  watchersOf.set(socket, watchers)
  socket.once('end', () => {
    for (const watcher of watchers) watcher.onEnd?.()
  })
  socket.once('close', () => {
    for (const watcher of watchers) watcher.onClose?.()
  })
  return watchers
}
