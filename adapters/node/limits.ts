import type { ServerOptions } from 'node:http'
import type { ServerOptions as Http2ServerOptions, ServerHttp2Session } from 'node:http2'

const KIB = 1024
const MIB = 1024 * KIB

/** How long a new connection may take until its protocol is known, including the TLS handshake. */
export const HANDSHAKE_MS = 10_000
/** How long the headers of an HTTP/1.1 request may take. */
export const HEADERS_MS = 20_000
/** How often the client of an HTTP/2 connection has to answer. */
export const HTTP2_PROBE_MS = 30_000
/** How long an upload may continue after its response is complete. */
export const LINGER_MS = 5_000
/** How long `close` waits for requests in flight. */
export const SHUTDOWN_GRACE_MS = 10_000
/** How often `close` looks for connections that have become idle. */
export const IDLE_CHECK_MS = 50
/**
 * Pipelined requests that one HTTP/1.1 connection may have in flight: as many as an HTTP/2 connection has
 * streams.
 */
export const PIPELINED_REQUESTS_MAX = 1_000

const HEADERS_BYTES_MAX = 32 * KIB
/**
 * The bytes that a stream may have in flight towards the server: more than a whole batch with its framing.
 */
const STREAM_WINDOW_BYTES = 2 * MIB
/** The bytes that all streams of a connection may have in flight towards the server. */
const CONNECTION_WINDOW_BYTES = 16 * MIB

/**
 * Streams of an HTTP/2 connection that its client may cancel at once, and per second in the long run. Leaving
 * a read session cancels one. Beyond it, the connection is closed, which stops floods of requests that are
 * cancelled at once. Node before 22.10 has no option for it and permits 1,000 at once, and 33 a second.
 */
const STREAM_RESETS_BURST = 20_000
const STREAM_RESETS_PER_SECOND = 1_000
export const HTTP1_OPTIONS: ServerOptions = {
  noDelay: true,
  keepAlive: true,
  // When an idle connection is first probed for a peer that has vanished.
  keepAliveInitialDelay: 30_000,
  // Longer than clients keep idle connections, so that they close first and never send a request into a
  // closing one.
  keepAliveTimeout: 65_000,
  // An upload may last as long as an append session.
  requestTimeout: 0,
  maxHeaderSize: HEADERS_BYTES_MAX,
}

export const HTTP2_OPTIONS: Http2ServerOptions & StreamResetLimits = {
  settings: {
    maxConcurrentStreams: PIPELINED_REQUESTS_MAX,
    initialWindowSize: STREAM_WINDOW_BYTES,
    maxFrameSize: 2 * MIB,
    maxHeaderListSize: HEADERS_BYTES_MAX,
    enablePush: false,
  },
  // In MiB; beyond it new streams are rejected. Node's default of 10 is less than one connection window.
  maxSessionMemory: 64,
  streamResetBurst: STREAM_RESETS_BURST,
  streamResetRate: STREAM_RESETS_PER_SECOND,
}

/** Options that the types of Node 20 lack. */
interface StreamResetLimits {
  readonly streamResetBurst: number
  readonly streamResetRate: number
}

/** Ends an HTTP/2 connection whose first request has not arrived in time. */
export function limitFirstRequest(session: ServerHttp2Session, headersMs: number): void {
  if (headersMs === 0) return
  const timer = setTimeout(() => session.destroy(), headersMs)
  const stop = () => clearTimeout(timer)
  session.once('stream', stop).once('close', stop)
}

/**
 * Ends an HTTP/2 connection from which nothing more arrives. Node stops reading a connection after some
 * malformed frames, without an event, and would keep it forever when its client has left.
 */
export function limitSilence(session: ServerHttp2Session): void {
  const { socket } = session
  let received: number | undefined
  const timer = setInterval(() => {
    // The socket of a destroyed session throws. Other runtimes may not count what arrives.
    if (session.destroyed) return
    const { bytesRead } = socket
    if (bytesRead !== undefined && bytesRead === received) return session.destroy()
    received = bytesRead
    // The client has to acknowledge these empty settings. Node sends no PING to a client that has sent GOAWAY
    // and still reads its sessions.
    session.settings({})
  }, HTTP2_PROBE_MS)
  session.once('close', () => clearInterval(timer))
}

/** Sets the window of the connection, which is possible only for an existing session. */
export function widenConnectionWindow(session: ServerHttp2Session): void {
  if (!session.destroyed) session.setLocalWindowSize(CONNECTION_WINDOW_BYTES)
}

/** The longest delay of a timer, 24.8 days; one with a longer delay would fire at once. */
export const DURATION_MS_MAX = 2 ** 31 - 1
