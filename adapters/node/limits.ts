/** All header fields of a request together. */
export const MAX_HEADER_BYTES = 32 * 1024
/** From accepting a connection until it has shown which protocol it speaks, the TLS handshake included. */
export const FIRST_BYTES_TIMEOUT_MS = 10_000
/** From the first byte of an HTTP/1.1 request until the end of its headers. */
export const HEADERS_TIMEOUT_MS = 20_000
/** How many requests one HTTP/1.1 connection may have waiting: as many as an HTTP/2 connection has streams. */
export const PIPELINED_REQUESTS_MAX = 1_000
/** How long an HTTP/1.1 connection may wait for its next request. Clients keep theirs for some seconds: leave first to them. */
export const KEEP_ALIVE_TIMEOUT_MS = 65_000
/** How long an upload may go on after its response is complete. */
export const LINGER_MS = 5_000
/** When an idle connection is first probed for a peer that vanished without a word. */
export const TCP_KEEP_ALIVE_MS = 30_000
/** How long `close` waits for what is in flight (wire-behaviour.md 1.4). */
export const SHUTDOWN_GRACE_MS = 10_000
