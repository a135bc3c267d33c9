import type { ClientHttp2Session, ClientHttp2Stream } from 'node:http2'
import { Silence } from './errors.ts'
import type { IncomingResponse, OutgoingRequest } from './transport.ts'

/** How long the first answer of a server may take that shows whether it speaks HTTP/2, in milliseconds. */
const PROBE_MS = 10_000
/** Requests of one connection; further ones use another. Servers may allow fewer. */
const STREAMS_MAX = 100
/** How much may arrive before it is read, in bytes. */
const STREAM_WINDOW_BYTES = 2 * 1024 * 1024
const CONNECTION_WINDOW_BYTES = 16 * 1024 * 1024
/** The number of connections in succession without an answer after which a session uses HTTP/1.1. */
const UNANSWERED_MAX = 2
/** How long an idle connection is kept, in milliseconds. */
const IDLE_MS = 60_000

/** Codes of the errors of a connection on which the server speaks another protocol. */
const NOT_HTTP2 = /^ERR_HTTP2_ERROR$|NO_APPLICATION_PROTOCOL$/
/** Codes of HTTP/2. */
const NO_ERROR = 0
const CANCEL = 8

interface Connection {
  readonly session: ClientHttp2Session
  streams: number
}

/**
 * Sends requests over HTTP/2, in both directions at once, to one origin: with prior knowledge for `http:`,
 * with ALPN for `https:`.
 */
export class Http2Transport {
  readonly #origin: string
  readonly #connections = new Set<Connection>()
  #opening: Promise<Connection | undefined> | undefined
  /** Whether the server speaks HTTP/2, as far as is known. */
  #isSpoken = true
  /** How many connections in succession were lost without an answer. */
  #unanswered = 0
  #isClosed = false

  constructor(origin: string) {
    this.#origin = origin
  }

  /** Resolves to undefined, before anything was sent, if the server does not speak HTTP/2. */
  async send(request: OutgoingRequest): Promise<IncomingResponse | undefined> {
    const connection = await this.#connection()
    if (connection === undefined) return undefined
    const { method, url, headers, signal, upload } = request
    signal.throwIfAborted()
    const { session } = connection
    const stream = session.request(
      { ':method': method, ':path': url.slice(this.#origin.length), ...headers },
      { endStream: upload === undefined },
    )
    if (connection.streams++ === 0) session.ref()
    const cancel = () => {
      stream.close(CANCEL)
      // The network may drop its packets without a reset, as after a sleep or behind a balancer that forgot
      // it: further requests must use another connection. Those under way have deadlines of their own.
      if (signal.reason instanceof Silence) session.close()
    }
    signal.addEventListener('abort', cancel, { once: true })
    stream.once('close', () => {
      signal.removeEventListener('abort', cancel)
      if (--connection.streams === 0) session.unref()
    })
    upload?.(stream)
    return responseOf(stream, signal)
  }

  /** Ends all connections. */
  close(): void {
    this.#isClosed = true
    for (const { session } of this.#connections) session.destroy()
  }

  async #connection(): Promise<Connection | undefined> {
    for (;;) {
      if (!this.#isSpoken || this.#isClosed) return undefined
      for (const connection of this.#connections) {
        const { session, streams } = connection
        const most = Math.min(session.remoteSettings.maxConcurrentStreams ?? STREAMS_MAX, STREAMS_MAX)
        if (!session.closed && !session.destroyed && streams < most) return connection
      }
      this.#opening ??= this.#open().finally(() => {
        this.#opening = undefined
      })
      // Others may have used it up meanwhile.
      if ((await this.#opening) === undefined) return undefined
    }
  }

  /**
   * Resolves to undefined if the server answers with something else than HTTP/2, which is remembered, or if
   * it has closed several connections without an answer.
   */
  #open(): Promise<Connection | undefined> {
    // Not an import, which bundlers for browsers could not resolve.
    const session = process.getBuiltinModule('node:http2').connect(this.#origin, {
      settings: { enablePush: false, initialWindowSize: STREAM_WINDOW_BYTES },
    })
    const connection: Connection = { session, streams: 0 }
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => session.destroy(new Error('no answer to HTTP/2')), PROBE_MS)
      let isConnected = false
      let failure: NodeJS.ErrnoException = lostConnection()
      session.once('connect', () => {
        isConnected = true
        session.setLocalWindowSize(CONNECTION_WINDOW_BYTES)
      })
      session.once('remoteSettings', () => {
        this.#unanswered = 0
        if (this.#isClosed) session.destroy()
        this.#connections.add(connection)
        session.unref()
        session.setTimeout(IDLE_MS, () => {
          if (connection.streams === 0) session.destroy()
        })
        clearTimeout(timer)
        resolve(connection)
      })
      session.on('error', (error) => {
        failure = error
      })
      session.once('close', () => {
        clearTimeout(timer)
        if (this.#connections.delete(connection)) return
        if (NOT_HTTP2.test(String(failure.code))) this.#isSpoken = false
        // The server may speak something else and not say so, or be restarting.
        else if (!isConnected || ++this.#unanswered < UNANSWERED_MAX) reject(failure)
        resolve(undefined)
      })
    })
  }
}

/** Resolves to the response when its headers have arrived. */
function responseOf(stream: ClientHttp2Stream, signal: AbortSignal): Promise<IncomingResponse> {
  return new Promise((resolve, reject) => {
    stream.once('response', (headers) => {
      const chunks: AsyncIterator<Buffer> = stream[Symbol.asyncIterator]()
      resolve({
        status: Number(headers[':status']),
        header: (name) => headers[name]?.toString(),
        async read() {
          const { done, value } = await chunks.next()
          // Not a `Buffer`, whose `slice` does not copy.
          if (!done) return new Uint8Array(value.buffer, value.byteOffset, value.length)
          if (stream.rstCode !== NO_ERROR) throw lostConnection()
          return undefined
        },
        cancel: () => stream.close(CANCEL),
      })
    })
    stream.on('error', reject)
    stream.once('close', () => reject(signal.aborted ? signal.reason : lostConnection()))
  })
}

function lostConnection(): Error {
  return new Error('the connection was lost')
}
