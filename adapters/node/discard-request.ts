import { constants } from 'node:http2'
import { http2StreamOf, type NodeRequest, type NodeResponse } from './node-exchange.ts'

/**
 * Reads and drops an upload that nobody wants any more because its response is complete. One that does not end in time is cut off; to
 * do it at once could cost the client the response: what arrives on a closed connection makes the kernel reset it, and an HTTP/2
 * client may drop what it has not read yet when its stream is reset.
 */
export function discardRequest(req: NodeRequest, res: NodeResponse, lingerMs: number): void {
  const stream = http2StreamOf(res)
  const outlet = stream ?? res
  outlet.once('finish', () => {
    if (stream?.endAfterHeaders || req.readableEnded) return
    const cutOff = () => (stream ? stream.close(constants.NGHTTP2_NO_ERROR) : req.socket.destroy())
    const timer = setTimeout(cutOff, lingerMs)
    req.once('close', () => clearTimeout(timer))
    req.resume()
  })
}
