import type {
  ClientHttp2Session,
  ClientHttp2Stream,
  IncomingHttpHeaders,
  OutgoingHttpHeaders,
} from 'node:http2'
import type { Clock } from '../../../src/runtime/clock.ts'
import type { Upload } from '../call.ts'
import { type IncomingResponse, isSilence, type OutgoingRequest } from '../exchange.ts'
import { incomingResponse, StreamReader } from './stream-reader.ts'

// Not an import, which bundlers for browsers could not resolve. Loaded in Node only.
const { connect: connectHttp2, constants } = process.getBuiltinModule('node:http2')

/** How long the first answer of a server may take that shows whether it speaks HTTP/2, in milliseconds. */
const PROBE_MS = 10_000
/** Requests of one connection; further ones use another. Servers may allow fewer. */
const STREAMS_MAX = 100
/** How much may arrive before it is read, in bytes. */
const STREAM_WINDOW_BYTES = 2 * 1024 * 1024
const CONNECTION_WINDOW_BYTES = 16 * 1024 * 1024
/** How long the answer to a PING may take on a connection that has gone silent, in milliseconds. */
const PING_MS = 5_000
/** How long an idle connection is kept, in milliseconds. */
const IDLE_MS = 60_000

/** Sends requests over HTTP/2, in both directions at once. */
export interface Http2Transport {
  /**
   * Resolves to the response, while `upload` may still write the body of the request. Resolves to undefined,
   * before anything was sent, if the server does not speak HTTP/2.
   */
  fetch(request: OutgoingRequest, upload?: Upload): Promise<IncomingResponse | undefined>
  /** Ends all connections. */
  close(): void
}

/** Makes a transport for the origin of one URL: with prior knowledge for `http:`, with ALPN for `https:`. */
export function http2Transport(origin: string, clock: Clock): Http2Transport {
  return new Transport(origin, clock)
}

interface Connection {
  readonly session: ClientHttp2Session
  streams: number
  /** Whether a request got no answer, and the connection has yet to show that it is alive. */
  isSuspect: boolean
}

class Transport implements Http2Transport {
  readonly #origin: string
  readonly #clock: Clock
  readonly #connections = new Set<Connection>()
  #opening: Promise<Connection | undefined> | undefined
  #isSupported: boolean | undefined
  #isClosed = false

  constructor(origin: string, clock: Clock) {
    this.#origin = origin
    this.#clock = clock
  }

  async fetch(request: OutgoingRequest, upload?: Upload): Promise<IncomingResponse | undefined> {
    const connection = await this.#connection()
    if (connection === undefined) return undefined
    request.signal.throwIfAborted()
    const stream = this.#stream(connection, request, upload === undefined)
    upload?.(stream)
    return exchange(stream, request.signal, () => this.#probe(connection))
  }

  close(): void {
    this.#isClosed = true
    for (const { session } of this.#connections) session.destroy()
  }

  async #connection(): Promise<Connection | undefined> {
    for (;;) {
      if (this.#isSupported === false || this.#isClosed) return undefined
      for (const connection of this.#connections) {
        const { maxConcurrentStreams = STREAMS_MAX } = connection.session.remoteSettings
        const most = Math.min(maxConcurrentStreams, STREAMS_MAX)
        const { closed, destroyed } = connection.session
        const isUsable = !closed && !destroyed && !connection.isSuspect
        if (isUsable && connection.streams < most) return connection
      }
      this.#opening ??= this.#open().finally(() => {
        this.#opening = undefined
      })
      // Others may have used it up meanwhile.
      if ((await this.#opening) === undefined) return undefined
    }
  }

  /** Resolves to undefined, and remembers it, if the first server that is reached does not speak HTTP/2. */
  #open(): Promise<Connection | undefined> {
    const session = connectHttp2(this.#origin, {
      settings: { enablePush: false, initialWindowSize: STREAM_WINDOW_BYTES },
    })
    const connection: Connection = { session, streams: 0, isSuspect: false }
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => session.destroy(new Error('no answer to HTTP/2')), PROBE_MS)
      let isConnected = false
      session.once('connect', () => {
        isConnected = true
        session.setLocalWindowSize(CONNECTION_WINDOW_BYTES)
      })
      session.once('remoteSettings', () => {
        clearTimeout(timer)
        this.#isSupported = true
        if (this.#isClosed) session.destroy()
        this.#connections.add(connection)
        session.unref()
        session.setTimeout(IDLE_MS, () => {
          if (connection.streams === 0) session.close()
        })
        resolve(connection)
      })
      session.on('error', (error) => {
        clearTimeout(timer)
        const isOther =
          isConnected || /APPLICATION_PROTOCOL|ERR_HTTP2/.test(String((error as NodeJS.ErrnoException).code))
        if (!isOther || this.#isSupported) reject(error)
        else {
          this.#isSupported = false
          resolve(undefined)
        }
      })
      session.once('close', () => {
        clearTimeout(timer)
        this.#connections.delete(connection)
        if (isConnected && this.#isSupported === undefined) this.#isSupported = false
        resolve(undefined)
      })
    })
  }

  /**
   * Closes a connection unless it answers. A network that drops packets without a reset, as after a sleep or
   * behind a balancer that forgot it, would otherwise swallow every further request.
   */
  #probe(connection: Connection): void {
    const { session } = connection
    if (connection.isSuspect || session.destroyed) return
    connection.isSuspect = true
    // Behind much data, the answer may take long although the connection is alive.
    let received = session.socket.bytesRead
    let cancelTimer = () => {}
    const awaitAnswer = () => {
      cancelTimer = this.#clock.schedule(PING_MS, () => {
        if (session.destroyed) return
        const { bytesRead } = session.socket
        if (bytesRead === received) return session.destroy(lostConnection())
        received = bytesRead
        awaitAnswer()
      })
    }
    awaitAnswer()
    session.ping((error) => {
      cancelTimer()
      if (error === null) connection.isSuspect = false
      else session.destroy(lostConnection())
    })
  }

  #stream(connection: Connection, request: OutgoingRequest, endStream: boolean): ClientHttp2Stream {
    const headers: OutgoingHttpHeaders = {
      ':method': request.method,
      ':path': request.url.slice(this.#origin.length),
      ...request.headers,
    }
    const { session } = connection
    const stream = session.request(headers, { endStream })
    if (connection.streams++ === 0) session.ref()
    stream.once('close', () => {
      if (--connection.streams === 0) session.unref()
    })
    return stream
  }
}

/** Resolves to the response. `onSilence` is called when nothing arrives for too long. */
function exchange(
  stream: ClientHttp2Stream,
  signal: AbortSignal,
  onSilence: () => void,
): Promise<IncomingResponse> {
  const cancel = () => {
    stream.close(constants.NGHTTP2_CANCEL)
    if (isSilence(signal.reason)) onSilence()
  }
  signal.addEventListener('abort', cancel, { once: true })
  stream.once('close', () => signal.removeEventListener('abort', cancel))
  return new Promise((resolve, reject) => {
    stream.once('response', (headers) => {
      try {
        resolve(responseOf(headers, stream))
      } catch (error) {
        cancel()
        reject(error)
      }
    })
    stream.on('error', reject)
    stream.once('close', () => reject(signal.aborted ? signal.reason : lostConnection()))
  })
}

function responseOf(incoming: IncomingHttpHeaders, stream: ClientHttp2Stream): IncomingResponse {
  const isCut = () => stream.rstCode !== constants.NGHTTP2_NO_ERROR
  const cancel = () => stream.close(constants.NGHTTP2_CANCEL)
  return incomingResponse(Number(incoming[':status']), incoming, new StreamReader(stream, isCut, cancel))
}

function lostConnection(): Error {
  return new Error('the connection was lost')
}
