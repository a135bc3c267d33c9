import type { ServerHttp2Session } from 'node:http2'
import type { Socket } from 'node:net'
import { PIPELINED_REQUESTS_MAX } from './limits.ts'
import { http2StreamOf, type NodeRequest, type NodeResponse } from './protocols.ts'

/** The open connections and requests of a server. */
export interface ConnectionCounts {
  /** Accepted TCP connections. */
  readonly connections: number
  /** Connections that speak HTTP/2. */
  readonly http2Sessions: number
  /** Requests whose response is not complete. */
  readonly requests: number
}

const NO_RESPONSES: ReadonlySet<NodeResponse> = new Set()

/** Counts and closes everything that a server has open. */
export class Connections {
  readonly #sockets = new Set<Socket>()
  /** Connections whose protocol is not known yet. They do not delay shutting down. */
  readonly #undetected = new Set<Socket>()
  readonly #sessions = new Set<ServerHttp2Session>()
  /** Incomplete HTTP/1.1 responses by connection. */
  readonly #responses = new Map<Socket, Set<NodeResponse>>()
  /** Called during shutdown when an HTTP/1.1 connection may have become idle. */
  readonly #onDrained: () => void
  #requests = 0
  #isDraining = false
  #onEmpty: (() => void) | undefined
  /** Shared by all HTTP/1.1 responses: a closure for each would take memory. */
  readonly #onResponseClosed: (this: NodeResponse) => void

  constructor(onDrained: () => void) {
    this.#onDrained = onDrained
    const responses = this.#responses
    const ended = () => this.#requestsEnded(1)
    const uploaded = () => {
      if (this.#isDraining) onDrained()
    }
    this.#onResponseClosed = function () {
      if (!responses.get(this.req.socket)?.delete(this)) return
      ended()
      // A client may upload on after an early response: its connection is not idle before that ends.
      if (!this.req.complete) this.req.once('close', uploaded)
    }
  }

  get counts(): ConnectionCounts {
    return { connections: this.#sockets.size, http2Sessions: this.#sessions.size, requests: this.#requests }
  }

  accepted(socket: Socket): void {
    this.#sockets.add(socket)
    socket.once('close', () => {
      this.#sockets.delete(socket)
      this.#checkEmpty()
    })
  }

  /**
   * Adds a connection whose protocol is not known yet; with TLS, the decrypted socket. The returned function
   * removes it.
   */
  detecting(socket: Socket): () => void {
    const detected = () => {
      this.#undetected.delete(socket)
      socket.off('close', detected)
    }
    this.#undetected.add(socket)
    socket.once('close', detected)
    if (this.#isDraining) socket.destroy()
    return detected
  }

  sessionOpened(session: ServerHttp2Session): void {
    this.#sessions.add(session)
    session.once('close', () => {
      this.#sessions.delete(session)
      this.#checkEmpty()
    })
    if (this.#isDraining) session.close()
  }

  requestStarted(req: NodeRequest, res: NodeResponse): void {
    this.#requests++
    const stream = http2StreamOf(res)
    if (stream !== undefined) {
      stream.once('close', () => this.#requestsEnded(1))
      return
    }
    const { socket } = req
    const responses = this.#responses.get(socket) ?? this.#track(socket)
    responses.add(res)
    res.on('close', this.#onResponseClosed)
    if (this.#isDraining) closeAfter(res)
    // Node reads on while no response has begun, and would accept any number of waiting requests.
    if (responses.size > PIPELINED_REQUESTS_MAX) socket.destroy()
  }

  /** The incomplete responses of an HTTP/1.1 connection. */
  responsesOf(socket: Socket): ReadonlySet<NodeResponse> {
    return this.#responses.get(socket) ?? NO_RESPONSES
  }

  /**
   * Asks clients to leave after their requests, and drops connections without any. Resolves when nothing is
   * open, provided that nothing new is accepted.
   */
  drain(): Promise<void> {
    this.#isDraining = true
    for (const socket of this.#undetected) socket.destroy()
    for (const session of this.#sessions) session.close()
    for (const responses of this.#responses.values()) for (const res of responses) closeAfter(res)
    return new Promise((resolve) => {
      this.#onEmpty = resolve
      this.#checkEmpty()
    })
  }

  destroyAll(): void {
    for (const session of this.#sessions) session.destroy()
    for (const socket of this.#sockets) socket.destroy()
  }

  /** A pipelined response that waits for its turn emits no `close` when its connection is lost. */
  #track(socket: Socket): Set<NodeResponse> {
    const responses = new Set<NodeResponse>()
    this.#responses.set(socket, responses)
    socket.once('close', () => {
      this.#responses.delete(socket)
      const { size } = responses
      responses.clear()
      this.#requestsEnded(size)
    })
    return responses
  }

  #requestsEnded(count: number): void {
    this.#requests -= count
    if (this.#isDraining) this.#onDrained()
    this.#checkEmpty()
  }

  #checkEmpty(): void {
    if (this.#sockets.size + this.#sessions.size + this.#requests === 0) this.#onEmpty?.()
  }
}

/** Asks an HTTP/1.1 client to open another connection for its next request. */
function closeAfter(res: NodeResponse): void {
  if (!res.headersSent) res.setHeader('connection', 'close')
}
