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

/** Counts and closes everything that a server has open. */
export class Connections {
  readonly #sockets = new Set<Socket>()
  /** Connections whose protocol is not known yet. They do not delay shutting down. */
  readonly #undetected = new Set<Socket>()
  readonly #sessions = new Set<ServerHttp2Session>()
  /**
   * The incomplete responses of each HTTP/1.1 connection, the oldest first. One set of all would keep what it
   * has contained from the garbage collector's quick passes.
   */
  readonly #pipelines = new Map<Socket, Set<NodeResponse>>()
  /** HTTP/1.1 connections that sent something else. */
  readonly #malformed = new WeakSet<Socket>()
  #requests = 0
  #isDraining = false
  #onEmpty: (() => void) | undefined

  get counts(): ConnectionCounts {
    return { connections: this.#sockets.size, http2Sessions: this.#sessions.size, requests: this.#requests }
  }

  accepted(socket: Socket): void {
    this.#addUntilClosed(this.#sockets, socket)
  }

  /** Adds a connection whose protocol is not known yet; with TLS, the decrypted socket. */
  detecting(socket: Socket): void {
    this.#addUntilClosed(this.#undetected, socket)
    if (this.#isDraining) socket.destroy()
  }

  detected(socket: Socket): void {
    this.#undetected.delete(socket)
  }

  sessionOpened(session: ServerHttp2Session): void {
    this.#addUntilClosed(this.#sessions, session)
    if (this.#isDraining) session.close()
  }

  requestStarted(req: NodeRequest, res: NodeResponse): void {
    this.#requests++
    const stream = http2StreamOf(res)
    if (stream !== undefined) {
      stream.once('close', () => this.#requestsEnded(1))
      return
    }
    const pipeline = this.#pipelines.get(req.socket) ?? this.#newPipeline(req.socket)
    pipeline.add(res)
    res.once('close', () => {
      if (pipeline.delete(res)) this.#requestsEnded(1)
    })
    if (this.#isDraining) closeAfter(res)
    // Node reads on while no response has begun, and would accept any number of waiting requests.
    if (pipeline.size > PIPELINED_REQUESTS_MAX) req.socket.destroy()
  }

  /**
   * Replies to what is not HTTP, and ends its connection. Earlier requests are answered first: by default
   * Node drops their responses, although an append may be durable, and its own 400 would look like the
   * response to the append.
   */
  rejectMalformed(error: NodeJS.ErrnoException, socket: Socket): void {
    // Each further chunk that arrives is an error again.
    if (this.#malformed.has(socket)) return
    this.#malformed.add(socket)
    const pending = [...(this.#pipelines.get(socket) ?? [])]
    const isStreaming = pending.some(({ headersSent, writableEnded }) => headersSent && !writableEnded)
    const last = pending.findLast(({ req }) => req.complete)
    const end = () => {
      if (!isStreaming && socket.writable && error.code !== 'ECONNRESET') {
        const status = STATUS_LINES[error.code ?? ''] ?? '400 Bad Request'
        socket.write(`HTTP/1.1 ${status}\r\nConnection: close\r\n\r\n`)
      }
      socket.destroy(error)
    }
    if (last === undefined || isStreaming) end()
    else last.once('close', end)
  }

  /**
   * Asks clients to leave after their requests, and drops connections without any. Resolves when nothing is
   * open, provided that nothing new is accepted.
   */
  drain(): Promise<void> {
    this.#isDraining = true
    for (const socket of this.#undetected) socket.destroy()
    for (const session of this.#sessions) session.close()
    for (const pipeline of this.#pipelines.values()) for (const res of pipeline) closeAfter(res)
    return new Promise((resolve) => {
      this.#onEmpty = resolve
      this.#checkEmpty()
    })
  }

  destroyAll(): void {
    for (const session of this.#sessions) session.destroy()
    for (const socket of this.#sockets) socket.destroy()
  }

  #addUntilClosed<One extends Socket | ServerHttp2Session>(all: Set<One>, one: One): void {
    all.add(one)
    one.once('close', () => {
      all.delete(one)
      this.#checkEmpty()
    })
  }

  #newPipeline(socket: Socket): Set<NodeResponse> {
    const pipeline = new Set<NodeResponse>()
    this.#pipelines.set(socket, pipeline)
    // A pipelined response that waits for its turn emits no `close` when its connection is lost.
    socket.once('close', () => {
      this.#pipelines.delete(socket)
      this.#requestsEnded(pipeline.size)
      pipeline.clear()
    })
    return pipeline
  }

  #requestsEnded(count: number): void {
    this.#requests -= count
    this.#checkEmpty()
  }

  #checkEmpty(): void {
    if (this.#sockets.size + this.#sessions.size + this.#requests === 0) this.#onEmpty?.()
  }
}

/** The replies of Node's own server. */
const STATUS_LINES: Readonly<Record<string, string>> = {
  HPE_HEADER_OVERFLOW: '431 Request Header Fields Too Large',
  HPE_CHUNK_EXTENSIONS_OVERFLOW: '413 Payload Too Large',
  ERR_HTTP_REQUEST_TIMEOUT: '408 Request Timeout',
}

/** Asks an HTTP/1.1 client to open another connection for its next request. */
function closeAfter(res: NodeResponse): void {
  if (!res.headersSent) res.setHeader('connection', 'close')
}
