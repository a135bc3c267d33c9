import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Http2ServerRequest, Http2ServerResponse, ServerHttp2Stream } from 'node:http2'

/** What Node hands to a request listener, for HTTP/1.1 and for HTTP/2. */
export type NodeRequest = IncomingMessage | Http2ServerRequest
export type NodeResponse = ServerResponse | Http2ServerResponse

/** The HTTP/2 stream behind a response; `undefined` for HTTP/1.1. */
export function http2StreamOf(res: NodeResponse): ServerHttp2Stream | undefined {
  return 'stream' in res ? res.stream : undefined
}

/** Drops the connection (HTTP/1.1) or resets the stream (HTTP/2), so that what was sent is not taken for a whole response. */
export function abortExchange(res: NodeResponse): void {
  const stream = http2StreamOf(res)
  // Without an error, Node would end the stream cleanly. The error goes nowhere but into the reset's code.
  if (stream) stream.destroy(new Error('The response was aborted'))
  else res.destroy()
}
