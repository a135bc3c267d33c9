import { ServerResponse } from 'node:http'
import { constants } from 'node:http2'
import type { Writable } from 'node:stream'
import type { MaybePromise } from '../../src/runtime/maybe-promise.ts'
import type { RequestExchange } from '../http/exchange.ts'
import type { Reply } from '../http/reply.ts'
import { onClientLeft } from './client-watch.ts'
import { http2StreamOf, type NodeRequest, type NodeResponse } from './protocols.ts'

/**
 * Sends a reply. `onError` receives the failure of an iterable body. Throws if the headers cannot be sent.
 */
export function writeReply(
  exchange: RequestExchange,
  res: NodeResponse,
  reply: Reply,
  onError: (error: unknown) => void,
  openShare: OpenShare,
): void {
  const { status, headers, body } = reply
  if (typeof body !== 'object' || body instanceof Uint8Array) {
    writeWhole(exchange.method, res, reply, openShare)
    return
  }
  const chunks = body[Symbol.asyncIterator]()
  if (isClosed(res)) {
    void chunks.return?.()
    return
  }
  // Both kinds of responses have the methods used here; only their overloads differ.
  const http1 = res as ServerResponse
  http1.writeHead(status, headers)
  // Node would keep the headers until the first chunk.
  http1.flushHeaders()
  body.onEvicted = () => {
    // Otherwise the body reports the reason to its client.
    if (outletOf(http1).writableNeedDrain) abortResponse(res)
  }
  new ChunkWriter(chunks, http1, onError).start()
}

/** Responses from this size on are counted in `limits.readBufferBytes` until they are sent. */
const COUNTED_BYTES_MIN = 65_536

/** Sends a reply that has no iterable body. */
export function writeWhole(
  method: string | undefined,
  res: NodeResponse,
  { status, headers, body = '' }: Reply,
  openShare?: OpenShare,
): void {
  if (isClosed(res)) return
  const isBodiless = method === 'HEAD' || status === 204 || status === 304
  const content = body as string | Uint8Array
  const http1 = res as ServerResponse
  const length = Buffer.byteLength(content)
  if (openShare !== undefined && length >= COUNTED_BYTES_MIN) {
    const share = openShare(() => abortResponse(res))
    share?.resize(length)
    http1.once('close', () => share?.close())
  }
  http1.writeHead(status, isBodiless ? headers : { ...headers, 'content-length': length })
  http1.end(content)
}

/** Opens the memory of a response that is not sent yet; `end` drops it. Undefined without an engine. */
export type OpenShare = (end: () => void) => { resize(bytes: number): void; close(): void } | undefined

/**
 * Writes the chunks of a body at the pace of its client. No function refers to a chunk while the next one is
 * waited for: thousands of responses wait.
 */
class ChunkWriter {
  readonly #chunks: AsyncIterator<Uint8Array>
  readonly #res: ServerResponse
  readonly #onError: (error: unknown) => void
  #isOver = false

  constructor(chunks: AsyncIterator<Uint8Array>, res: ServerResponse, onError: (error: unknown) => void) {
    this.#chunks = chunks
    this.#res = res
    this.#onError = onError
  }

  start(): void {
    onClientLeft(this.#res.req, this.#res, () => this.#leave())
    this.#run().catch((error: unknown) => {
      if (this.#isOver) return
      this.#isOver = true
      this.#onError(error)
      abortResponse(this.#res)
    })
  }

  async #run(): Promise<void> {
    let hasMore = true
    while (hasMore) hasMore = await this.#write(await this.#chunks.next())
  }

  /** Writes a chunk, or the end. Whether there may be more, once the client has caught up. */
  #write({ done, value }: IteratorResult<Uint8Array>): MaybePromise<boolean> {
    if (this.#isOver) return false
    if (done) {
      this.#isOver = true
      this.#res.end()
      return false
    }
    if (isClosed(this.#res)) return false
    if (writeChunk(this.#res, value)) return true
    return new Promise((resolve) => outletOf(this.#res).once('drain', () => resolve(true)))
  }

  #leave(): void {
    if (this.#isOver) return
    this.#isOver = true
    abortResponse(this.#res)
    this.#chunks.return?.().catch(this.#onError)
  }
}

/** Larger chunks are not worth a copy. */
const COPIED_BYTES_MAX = 16_384

/**
 * Writes a small chunk of an HTTP/1.1 response with one write of its socket. Node's `write` makes four, which
 * cost more than everything else that is done for an event; it is used if a framework has replaced it.
 */
function writeChunk(res: ServerResponse, chunk: Uint8Array): boolean {
  const { socket } = res
  const isCopied =
    chunk.length > 0 &&
    chunk.length <= COPIED_BYTES_MAX &&
    res.chunkedEncoding &&
    // A pipelined response has no socket before its turn.
    socket !== null &&
    res.write === ServerResponse.prototype.write
  return isCopied ? socket.write(encodeChunk(chunk)) : res.write(chunk)
}

/** The followers of a stream send the same chunks one after the other. */
const encodedChunks = new WeakMap<Uint8Array, Buffer>()

/** Encodes a chunk in the chunked transfer coding (RFC 9112, 7.1). */
function encodeChunk(chunk: Uint8Array): Buffer {
  let encoded = encodedChunks.get(chunk)
  if (encoded === undefined) {
    const size = `${chunk.length.toString(16)}\r\n`
    encoded = Buffer.concat([Buffer.from(size), chunk, Buffer.from('\r\n')])
    encodedChunks.set(chunk, encoded)
  }
  return encoded
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

/** Returns the stream that a response is written to, which reports when it has drained. */
function outletOf(res: NodeResponse): Writable {
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
