import type { EventEmitter } from 'node:events'
import type { ServerHttp2Session } from 'node:http2'
import type { Socket } from 'node:net'
import { SharedSignal } from '../../src/runtime/abort.ts'
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
  readonly #sessions = new Set<ServerHttp2Session>()
  /** The incomplete responses of each connection. */
  readonly #responses = new Map<EventEmitter, Set<NodeResponse>>()
  /** Aborts when the server begins to stop. */
  readonly stopping = new SharedSignal()

  get counts(): ConnectionCounts {
    let requests = 0
    for (const responses of this.#responses.values()) requests += responses.size
    return { connections: this.#sockets.size, http2Sessions: this.#sessions.size, requests }
  }

  accepted(socket: Socket): void {
    this.#addUntilClosed(this.#sockets, socket)
  }

  sessionOpened(session: ServerHttp2Session): void {
    this.#addUntilClosed(this.#sessions, session)
    if (this.stopping.aborted) session.close()
  }

  requestStarted(req: NodeRequest, res: NodeResponse): void {
    const stream = http2StreamOf(res)
    const connection: EventEmitter = stream?.session ?? req.socket
    const responses = this.#responses.get(connection) ?? this.#newResponses(connection)
    responses.add(res)
    const outlet: EventEmitter = stream ?? res
    outlet.once('close', () => responses.delete(res))
    if (stream !== undefined) return
    if (this.stopping.aborted) closeAfter(res)
    // Node reads on while no response has begun, and would accept any number of waiting requests.
    if (responses.size > PIPELINED_REQUESTS_MAX) req.socket.destroy()
  }

  /** Asks clients to leave after their requests. */
  drain(): void {
    this.stopping.abort(undefined)
    for (const session of this.#sessions) session.close()
    for (const responses of this.#responses.values()) for (const res of responses) closeAfter(res)
  }

  destroyAll(): void {
    for (const session of this.#sessions) session.destroy()
    for (const socket of this.#sockets) socket.destroy()
  }

  #addUntilClosed<One extends Socket | ServerHttp2Session>(all: Set<One>, one: One): void {
    all.add(one)
    one.once('close', () => all.delete(one))
  }

  #newResponses(connection: EventEmitter): Set<NodeResponse> {
    const responses = new Set<NodeResponse>()
    this.#responses.set(connection, responses)
    // A pipelined response that waits for its turn emits no `close` when its connection is lost.
    connection.once('close', () => this.#responses.delete(connection))
    return responses
  }
}

/** Asks an HTTP/1.1 client to open another connection for its next request. HTTP/2 has GOAWAY for that. */
function closeAfter(res: NodeResponse): void {
  if (!res.headersSent && http2StreamOf(res) === undefined) res.setHeader('connection', 'close')
}
