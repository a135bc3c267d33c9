const KIB = 1_024

/** What an open session costs where nothing happens, in bytes: what docs/limits.md says. Measured, and a half more. */
export const SESSION_BYTES = {
  /** A read session or a long poll of this process. */
  inProcess: 8 * KIB,
  append: 4 * KIB,
  /** A response of the handler that is read, or a long poll. */
  response: 16 * KIB,
  /** The same on a connection of its own, or on a stream of HTTP/2: both ends of it here. */
  connection: 64 * KIB,
}
