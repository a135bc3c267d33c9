import { errorBody } from '../../src/wire/errors.ts'

/** A response in any runtime. */
export interface Reply {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** A stream is sent as it produces chunks. */
  readonly body?: string | Uint8Array | ReplyStream | undefined
}

/** Bytes that are written at once, in one or more parts, which may share memory with others. */
export type ReplyChunk = Uint8Array | readonly Uint8Array[]

/** A body produced while it is sent. `return` is called when the client leaves, even during `next`. */
export interface ReplyStream extends AsyncIterable<ReplyChunk> {
  /**
   * Set by the bridge. Called when the memory of a client that does not read is needed: what was not sent is
   * dropped, and the response is cut short.
   */
  onEvicted?: (() => void) | undefined

  /** A bridge calls it if it asks for the next chunk only when it has no more use for the one before. */
  reuseMemory?(): void
}

const JSON_HEADERS = { 'content-type': 'application/json' }
const PROTOBUF_HEADERS = { 'content-type': 'application/protobuf' }

export function jsonReply(json: string, status = 200, headers?: Readonly<Record<string, string>>): Reply {
  return { status, headers: { ...JSON_HEADERS, ...headers }, body: json }
}

export function protobufReply(message: Uint8Array): Reply {
  return { status: 200, headers: PROTOBUF_HEADERS, body: message }
}

/** A stream of events or frames. The headers keep proxies from buffering it. */
export function streamReply(contentType: string, body: ReplyStream): Reply {
  const headers = {
    'content-type': contentType,
    'cache-control': 'no-cache, no-transform',
    'x-accel-buffering': 'no',
  }
  return { status: 200, headers, body }
}

export function errorReply(error: unknown): Reply {
  const { status, text } = errorBody(error)
  return jsonReply(text, status, status === 401 ? { 'www-authenticate': 'Bearer' } : undefined)
}

/** A rejection of the HTTP layer, with a code that no engine error has. */
export function rejection(
  status: number,
  code: string,
  message: string,
  headers?: Readonly<Record<string, string>>,
): Reply {
  return jsonReply(JSON.stringify({ code, message }), status, headers)
}
