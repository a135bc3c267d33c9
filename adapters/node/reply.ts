import { ServerResponse } from 'node:http'
import { constants } from 'node:http2'
import type { Writable } from 'node:stream'
import { onAbort } from '../../src/runtime/abort.ts'
import { isPromise, type MaybePromise } from '../../src/runtime/maybe-promise.ts'
import type { RequestExchange } from '../http/exchange.ts'
import type { Reply, ReplyChunk, ReplyStream } from '../http/reply.ts'
import { http2StreamOf, type NodeRequest, type NodeResponse } from './protocols.ts'

/**
 * Counts the memory of a response in `limits.readBufferBytes` until it is closed; `end` drops the response.
 * Undefined without an engine.
 */
export type OpenShare = (bytes: number, end: () => void) => { close(): void } | undefined

/**
 * Sends a reply. Resolves when its last chunk is written, or its client has left. Rejects with the failure of
 * an iterable body, and if the headers cannot be sent.
 */
export async function writeReply(
  exchange: Pick<RequestExchange, 'method' | 'signal'>,
  response: NodeResponse,
  reply: Reply,
  openShare?: OpenShare,
): Promise<void> {
  const { status, headers, body = '' } = reply
  // Both kinds of responses have the methods used here; only their overloads differ.
  const res = response as ServerResponse
  if (typeof body === 'object' && !(body instanceof Uint8Array)) {
    await writeStream(body, res, exchange.signal, () => {
      res.writeHead(status, headers)
      // Node would keep the headers until the first chunk.
      res.flushHeaders()
    })
    return
  }
  if (isClosed(res)) return
  const isBodiless = exchange.method === 'HEAD' || status === 204 || status === 304
  const length = Buffer.byteLength(body)
  res.writeHead(status, isBodiless ? headers : { ...headers, 'content-length': length })
  res.end(body)
  // The kernel has usually taken an HTTP/1.1 response by now.
  if (openShare === undefined || outletOf(res).writableLength === 0) return
  const share = openShare(length, () => abortResponse(res))
  const close = () => share?.close()
  res.once('close', close)
  // A pipelined response that waits for its turn emits no `close` when its connection is lost.
  res.req.once('aborted', close)
}

/** Writes the chunks of a body at the pace of the client. Its `return` is called when the client leaves. */
async function writeStream(
  body: ReplyStream,
  res: ServerResponse,
  left: AbortSignal,
  writeHead: () => void,
): Promise<void> {
  const chunks = body[Symbol.asyncIterator]()
  let hasLeft = false
  const leave = () => {
    hasLeft = true
    // Also ends a pending `next`.
    void chunks.return?.().catch(() => {})
  }
  const stopWatching = onAbort(left, () => {
    leave()
    // Node keeps a stream that its client has reset while much is left to send.
    abortResponse(res)
  })
  body.onEvicted = () => {
    // Otherwise the body reports the reason to its client.
    if (outletOf(res).writableNeedDrain) abortResponse(res)
  }
  // The `write` of a framework may ignore its callback.
  const reportsWrites = http2StreamOf(res) !== undefined || hasNodesWrite(res)
  /** Returns whether there is more. Nothing refers to a chunk while the next one is waited for. */
  const write = ({ done, value }: IteratorResult<ReplyChunk>): MaybePromise<boolean> => {
    if (hasLeft || isClosed(res)) return false
    if (done) {
      res.end()
      return false
    }
    if (!(value instanceof Uint8Array) && reportsWrites) return writeParts(res, value)
    if (writeChunk(res, value instanceof Uint8Array ? value : Buffer.concat(value))) return true
    return new Promise((resolve) => outletOf(res).once('drain', () => resolve(true)))
  }
  if (reportsWrites) body.reuseMemory?.()
  try {
    if (hasLeft || isClosed(res)) return
    writeHead()
    for (let hasMore = true; hasMore; ) {
      const written = write(await chunks.next())
      hasMore = isPromise(written) ? await written : written
    }
  } finally {
    stopWatching()
    leave()
  }
}

/** Larger chunks are not worth a copy. */
const COPIED_BYTES_MAX = 16_384
const CRLF = Buffer.from('\r\n')
/** Chunks in the chunked transfer coding (RFC 9112, 7.1): the followers of a stream send the same ones. */
const encodedChunks = new WeakMap<Uint8Array, Buffer>()

/** Returns whether the client keeps up. */
function writeChunk(res: ServerResponse, chunk: Uint8Array): boolean {
  const isSmall = chunk.length > 0 && chunk.length <= COPIED_BYTES_MAX
  // Node's `write` writes four times to the socket, a third of the work for an event. Frameworks replace it,
  // and a pipelined response has no socket before its turn.
  const isPlain = res.chunkedEncoding && hasNodesWrite(res)
  if (!isSmall || !isPlain || res.socket === null) return res.write(chunk)
  return res.socket.write(encodedChunk(chunk))
}

function encodedChunk(chunk: Uint8Array): Buffer {
  const known = encodedChunks.get(chunk)
  if (known !== undefined) return known
  const encoded = Buffer.concat([Buffer.from(`${chunk.length.toString(16)}\r\n`), chunk, CRLF])
  encodedChunks.set(chunk, encoded)
  return encoded
}

/** Whether no framework has replaced `write` of an HTTP/1.1 response, to compress it or count its bytes. */
function hasNodesWrite(res: ServerResponse): boolean {
  return res.write === ServerResponse.prototype.write
}

/** Resolves once the socket has taken the parts, and their memory can be used again. */
function writeParts(res: ServerResponse, parts: readonly Uint8Array[]): Promise<true> {
  const outlet: Writable = http2StreamOf(res) ?? res
  return new Promise((resolve) => {
    outlet.cork()
    for (const [index, part] of parts.entries()) {
      outlet.write(part, index === parts.length - 1 ? () => resolve(true) : undefined)
    }
    outlet.uncork()
  })
}

/** Returns the stream that a response is written to, which reports when it has drained. */
function outletOf(res: ServerResponse): Writable {
  return http2StreamOf(res) ?? res.socket ?? res
}

/**
 * Whether the connection is lost. Over HTTP/2 the stream itself learns that a turn later; if it is written to
 * in between, Node may write empty frames to the lost connection forever.
 */
function isClosed(res: NodeResponse): boolean {
  const stream = http2StreamOf(res)
  if (stream === undefined) return res.req.socket.destroyed
  const { session } = stream
  return stream.destroyed || session === undefined || session.destroyed || session.socket.destroyed
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
  const isUploaded = () => (stream === undefined ? req.complete : stream.endAfterHeaders || req.readableEnded)
  if (isUploaded()) return
  // A client that does not read its response must not fill buffers with an upload meanwhile. An append
  // session listens to its upload.
  if (req.listenerCount('readable') === 0) req.resume()
  const outlet = stream ?? res
  outlet.once('finish', () => {
    if (isUploaded()) return
    const cutOff = () => (stream ? stream.close(constants.NGHTTP2_NO_ERROR) : req.socket.destroy())
    const timer = setTimeout(cutOff, lingerMs)
    req.once('close', () => clearTimeout(timer))
    req.resume()
  })
}
