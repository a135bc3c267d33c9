import type { ClientHttp2Stream } from 'node:http2'
import type { AppendBatch } from '../../../src/model/append-input.ts'
import { encodeAppendInput } from '../../../src/wire/encode-append.ts'
import { messageFrameHead } from '../../../src/wire/frame.ts'

/** Frames are collected in chunks of this length, which are written together. Longer ones have their own. */
const CHUNK_BYTES = 128 * 1024
/** Chunks that are written at the same time: one is filled while the others are on their way. */
const WRITES_MAX = 2
/** Memory that is kept for the next chunks, in bytes. */
const SPARE_BYTES_MAX = 1024 * 1024

interface Chunk {
  readonly bytes: Uint8Array
  used: number
}

/**
 * The body of an append session. Batches of one turn, and those that wait for the connection, are written
 * together, from memory that is used again once it was sent.
 */
export class FrameUpload {
  #stream: ClientHttp2Stream | undefined
  /** Chunks to write. The last one may have room. */
  #chunks: Chunk[] = []
  #spares: Uint8Array[] = []
  #spareBytes = 0
  #writes = 0
  #isScheduled = false

  /** Begins the body of an attempt, which replaces the one before. */
  begin(stream: ClientHttp2Stream): void {
    this.#stream = stream
  }

  /** Encodes a batch, and writes it in this turn or when the connection has room. */
  send(batch: AppendBatch): void {
    encodeAppendInput(batch, batch, (length) => {
      const head = messageFrameHead(length)
      const chunk = this.#chunkFor(head.length + length)
      const start = chunk.used + head.length
      chunk.bytes.set(head, chunk.used)
      chunk.used = start + length
      return chunk.bytes.subarray(start, chunk.used)
    })
    if (this.#isScheduled) return
    this.#isScheduled = true
    queueMicrotask(() => {
      this.#isScheduled = false
      this.#write()
    })
  }

  /** Ends the body. Batches that were not written are not sent. */
  end(): void {
    this.#stream?.end()
    this.#stream = undefined
    this.#chunks = []
    this.#spares = []
  }

  #chunkFor(length: number): Chunk {
    const last = this.#chunks.at(-1)
    if (last !== undefined && last.used + length <= last.bytes.length) return last
    const spare = this.#spares.findIndex((bytes) => bytes.length >= length)
    const bytes = this.#spares.splice(spare, spare < 0 ? 0 : 1)[0]
    this.#spareBytes -= bytes?.length ?? 0
    const chunk = { bytes: bytes ?? new Uint8Array(Math.max(length, CHUNK_BYTES)), used: 0 }
    this.#chunks.push(chunk)
    return chunk
  }

  #write(): void {
    while (this.#writes < WRITES_MAX && this.#stream !== undefined) {
      const chunk = this.#chunks.shift()
      if (chunk === undefined) return
      const { bytes, used } = chunk
      this.#writes++
      this.#stream.write(bytes.subarray(0, used), (error) => {
        this.#writes--
        if (error) return
        if (this.#spareBytes + bytes.length <= SPARE_BYTES_MAX) {
          this.#spares.push(bytes)
          this.#spareBytes += bytes.length
        }
        this.#write()
      })
    }
  }
}
