import { HeadwaterError } from '../../src/model/errors.ts'

/** One HTTP request as the handler reads it, in any runtime. */
export interface RequestExchange {
  /** The method in capitals, such as `POST`. */
  readonly method: string
  /** Percent-encoded and beginning with `/`. */
  readonly path: string
  /** The query without the question mark; `''` if there is none. */
  readonly query: string
  /** The host that the request addresses, with its port unless that is the default. */
  readonly host: string
  /** Whether the request arrived over TLS, as far as the runtime knows. */
  readonly isSecure: boolean
  /** The host in lower case and without its port. */
  readonly hostname: string
  /** Whether the client connected to a loopback address. Undefined if the runtime does not expose it. */
  readonly isLoopback?: boolean | undefined
  /** Aborts when the client leaves before the response is complete. */
  readonly signal: AbortSignal
  /**
   * Identifies the client's connection: the usage metrics count appends by it. Undefined if the runtime does
   * not expose it.
   */
  readonly connection: object | undefined
  /** The runtime's own object: a `Request`, or Node's `IncomingMessage` or `Http2ServerRequest`. */
  readonly source: object
  /**
   * Returns the value of a header, or undefined if the request has none. `name` is in lower case. The value
   * has one character per byte, and those of repeated headers are joined by `, `.
   */
  header(name: string): string | undefined
  /**
   * Reads the whole body if all of it was received; otherwise returns undefined. Throws if something else has
   * read the body. Absent in runtimes that do not know.
   *
   * @internal
   */
  bytesIfReceived?(): Uint8Array | undefined
  /**
   * Reads the body as it arrives, no faster than it is consumed. `return` discards the rest. Throws if
   * something else has read the body; `next` rejects if the body is truncated.
   *
   * @internal
   */
  chunks(): AsyncIterableIterator<Uint8Array>
}

/** The error for a body that something else has read, which leaves nothing for the handler. */
export function bodyAlreadyRead(): HeadwaterError {
  return new HeadwaterError(
    'other',
    'the request body was already read, probably by a body parser such as `express.json()`, `koa-bodyparser` ' +
      "or Fastify's own: mount this handler before any body parser, or exclude its paths from the parser",
  )
}
