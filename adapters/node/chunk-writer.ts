import { ServerResponse } from 'node:http'
import { isPromise, LATER, type MaybePromise } from '../../src/runtime/maybe-promise.ts'
import type { ReplyChunks } from '../http/reply.ts'
import { onClientLeft } from './client-watch.ts'
import { abortResponse, isClosed, outletOf } from './response.ts'

/**
 * Writes the chunks of a body at the pace of its client. The frame of an async function would keep the last
 * chunk while nothing follows.
 */
export class ChunkWriter {
  readonly #chunks: ReplyChunks
  readonly #res: ServerResponse
  readonly #onError: (error: unknown) => void
  #isOver = false

  constructor(chunks: ReplyChunks, res: ServerResponse, onError: (error: unknown) => void) {
    this.#chunks = chunks
    this.#res = res
    this.#onError = onError
  }

  start(): void {
    onClientLeft(this.#res.req, this.#res, () => this.#leave())
    this.#advance()
  }

  /** Writes the chunks that are ready, and continues when more are, or when the client has caught up. */
  readonly #advance = (ready?: MaybePromise<IteratorResult<Uint8Array, unknown>>): void => {
    if (this.#isOver) return
    try {
      for (
        let next: typeof ready | typeof LATER = ready ?? this.#chunks.next(this.#advance);
        next !== LATER;
        next = this.#chunks.next(this.#advance)
      ) {
        if (isPromise(next)) {
          next.then(this.#advance, this.#fail)
          return
        }
        if (next.done) {
          this.#isOver = true
          this.#res.end()
          return
        }
        if (isClosed(this.#res)) return
        if (!writeChunk(this.#res, next.value)) {
          outletOf(this.#res).once('drain', this.#advance)
          return
        }
      }
    } catch (error) {
      this.#fail(error)
    }
  }

  readonly #fail = (error: unknown): void => {
    if (this.#isOver) return
    this.#isOver = true
    this.#onError(error)
    abortResponse(this.#res)
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
