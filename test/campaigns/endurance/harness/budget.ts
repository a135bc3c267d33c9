const KIB = 1_024

/** The memory of an idle session in bytes, as in docs/limits.md: the measured value plus a half. */
export const SESSION_BYTES = {
  /** A read session or a long poll in this process. */
  inProcess: 8 * KIB,
  append: 4 * KIB,
  /** A response of the handler that is being read, or a long poll. */
  response: 16 * KIB,
  /** The same on a connection of its own, or on an HTTP/2 stream. Both ends are in this process. */
  connection: 64 * KIB,
}
