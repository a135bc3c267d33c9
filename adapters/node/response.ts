import type { ServerResponse } from 'node:http'
import { constants } from 'node:http2'
import type { Writable } from 'node:stream'
import { http2StreamOf, type NodeRequest, type NodeResponse } from './protocols.ts'

/**
 * Whether the connection is lost. Over HTTP/2 the stream itself learns that a turn later; if it is written to
 * in between, Node may write empty frames to the lost connection forever.
 */
export function isClosed(res: NodeResponse): boolean {
  const stream = http2StreamOf(res)
  if (stream === undefined) return res.req.socket.destroyed
  const { session } = stream
  return stream.destroyed || session === undefined || session.destroyed || session.socket.destroyed
}

/** What a response is written to, which knows when it has drained. */
export function outletOf(res: NodeResponse): Writable {
  return http2StreamOf(res) ?? res.socket ?? (res as ServerResponse)
}

/**
 * Drops the connection (HTTP/1.1) or resets the stream (HTTP/2), so that the response cannot be mistaken for
 * a complete one.
 */
export function abortResponse(res: NodeResponse): void {
  const stream = http2StreamOf(res)
  if (stream === undefined) res.destroy()
  // Frameworks log errors of a response, and a stream that the client has reset is not an error.
  else if (stream.aborted) stream.destroy()
  // Without an error, Node ends the stream cleanly. Only the code of the reset depends on it.
  else stream.destroy(new Error('the response was aborted'))
}

/**
 * Reads and discards the rest of an upload after its response, and cuts off an upload that does not end in
 * time. Cutting it off at once could cost the client the response: data that arrives on a closed connection
 * makes the kernel reset it, and an HTTP/2 client may drop unread data when its stream is reset.
 */
export function discardUpload(req: NodeRequest, res: NodeResponse, lingerMs: number): void {
  const stream = http2StreamOf(res)
  if (isUploaded(req, res)) return
  const outlet = stream ?? res
  outlet.once('finish', () => {
    if (isUploaded(req, res)) return
    const cutOff = () => (stream ? stream.close(constants.NGHTTP2_NO_ERROR) : req.socket.destroy())
    const timer = setTimeout(cutOff, lingerMs)
    req.once('close', () => clearTimeout(timer))
    req.resume()
  })
}

/** Node itself discards a complete upload over HTTP/1.1. */
function isUploaded(req: NodeRequest, res: NodeResponse): boolean {
  const stream = http2StreamOf(res)
  return stream === undefined ? req.complete : stream.endAfterHeaders || req.readableEnded
}
