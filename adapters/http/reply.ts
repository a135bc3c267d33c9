import { errorBody } from '../../src/wire/error-body.ts'

/** A response as an endpoint gives it: encoding and CORS are added when it is sent. */
export interface Reply {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  /** A stream is sent as it is, anything else compressed if the client likes. */
  readonly body?: string | Uint8Array | ReadableStream<Uint8Array>
}

export function jsonReply(json: string, status = 200, headers: Readonly<Record<string, string>> = {}): Reply {
  return { status, headers: { 'content-type': 'application/json', ...headers }, body: json }
}

export function protobufReply(message: Uint8Array): Reply {
  return { status: 200, headers: { 'content-type': 'application/protobuf' }, body: message }
}

/** A stream of events or frames, which proxies are to pass on as it comes (wire-behaviour.md 1.9). */
export function streamReply(contentType: string, body: ReadableStream<Uint8Array>): Reply {
  const headers = {
    'content-type': contentType,
    'cache-control': 'no-cache, no-transform',
    'x-accel-buffering': 'no',
  }
  return { status: 200, headers, body }
}

/** An error as a response (wire-behaviour.md 2.1). */
export function errorReply(error: unknown): Reply {
  const { status, text } = errorBody(error)
  return jsonReply(text, status, status === 401 ? { 'www-authenticate': 'Bearer' } : {})
}
