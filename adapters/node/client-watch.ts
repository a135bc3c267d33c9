import { http2StreamOf, type NodeRequest, type NodeResponse } from './node-exchange.ts'
import { watchSocket } from './socket-watch.ts'

/**
 * Notices that the client of one request went away before it had the whole response.
 *
 * On HTTP/2 that is a reset or a lost connection. On HTTP/1.1 a client that leaves and one that only half-closes look the same
 * (a FIN), and the difference shows only when something is written. So a FIN aborts the signal at once, which frees whatever
 * waits, but the connection stays open for an answer that is ready or nearly so.
 */
export class ClientWatch {
  readonly response: NodeResponse
  readonly #left = new AbortController()
  #connected = true
  readonly #held = new Set<Request>()

  /** `onClosed` is called once, when the response has been taken or its client has left. */
  constructor(req: NodeRequest, res: NodeResponse, onClosed: () => void = () => {}) {
    this.response = res
    const stream = http2StreamOf(res)
    const outlet = stream ?? res

    const leave = () => this.#left.abort(new DOMException('The client closed the connection', 'AbortError'))
    const close = () => {
      if (!this.#connected) return
      this.#connected = false
      this.#held.clear()
      stopWatching()
      if (!outlet.writableFinished) leave()
      onClosed()
    }
    const onHalfClose = () => {
      if (!res.writableEnded) leave()
    }
    let stopWatching = () => {}
    outlet.once('close', close)
    if (stream) stream.once('aborted', leave)
    // A pipelined response that waits for its turn has no socket yet, and no `close` event when the connection is lost.
    else stopWatching = watchSocket(req.socket, { onEnd: onHalfClose, onClose: close })
    if (outlet.destroyed || req.socket.destroyed) close()
  }

  /** Keeps the request until its client has left: Node aborts its signal only while it exists, even if a handler holds on to the signal. */
  hold(request: Request): void {
    if (this.#connected) this.#held.add(request)
  }

  /** Aborts when the client has left, or has half-closed an HTTP/1.1 connection. */
  get signal(): AbortSignal {
    return this.#left.signal
  }

  /** Whether an answer may still arrive. */
  get connected(): boolean {
    return this.#connected
  }
}
