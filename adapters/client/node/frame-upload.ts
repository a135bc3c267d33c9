import type { ClientHttp2Stream } from 'node:http2'
import type { AppendBatch } from '../../../src/model/append-input.ts'
import { messageFrameHead } from '../../../src/wire/frame.ts'
import { encodeAppendInput } from '../../../src/wire/protobuf.ts'

/** Frames are collected in chunks of this length, which are written together. Longer ones have their own. */
const CHUNK_BYTES = 128 * 1024
/** Chunks that are written at the same time: one is filled while the others are on their way. */
const WRITES_MAX = 4
/** Memory that is kept for the next frames, in bytes. */
const SPARE_BYTES_MAX = 2 * 1024 * 1024
/** Spare memory that is this many times as long as what is needed is not used for it. */
const SPARE_FACTOR_MAX = 4

/** Memory with frames at its beginning. */
interface Chunk {
  readonly bytes: Uint8Array
  used: number
}

/** Memory that is used again once its frames were sent. New memory costs more than encoding into it. */
export class FrameMemory {
  readonly #spares: Uint8Array[] = []
  #spareBytes = 0

  /** An empty chunk of at least this length. */
  take(length: number): Chunk {
    const fits = (bytes: Uint8Array) =>
      bytes.length >= length && bytes.length <= Math.max(length * SPARE_FACTOR_MAX, CHUNK_BYTES)
    const index = this.#spares.findIndex(fits)
    if (index < 0) return { bytes: new Uint8Array(length), used: 0 }
    const [bytes] = this.#spares.splice(index, 1)
    this.#spareBytes -= bytes!.length
    return { bytes: bytes!, used: 0 }
  }

  /** Returns the memory of a chunk that is not used any more. */
  give({ bytes }: Chunk): void {
    if (this.#spareBytes + bytes.length > SPARE_BYTES_MAX) return
    this.#spares.push(bytes)
    this.#spareBytes += bytes.length
  }
}

/** The body of an append session. Batches of one turn, and those that wait to be written, go out together. */
export class FrameUpload {
  readonly #memory: FrameMemory
  #stream: ClientHttp2Stream | undefined
  /** Chunks to write. The last one may have room. */
  #chunks: Chunk[] = []
  #writes = 0
  #isScheduled = false

  constructor(memory: FrameMemory) {
    this.#memory = memory
  }

  /** Begins the body of an attempt, which replaces the one before. */
  begin(stream: ClientHttp2Stream): void {
    this.#stream = stream
  }

  /** Writes a batch in this turn, or when the connection has room. */
  send(batch: AppendBatch): void {
    this.#encode(batch)
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
  }

  /** Encodes the frame of a batch at the end of a chunk. */
  #encode(batch: AppendBatch): void {
    encodeAppendInput(batch, batch, (length) => {
      const head = messageFrameHead(length)
      const chunk = this.#chunkFor(head.length + length)
      const start = chunk.used + head.length
      chunk.bytes.set(head, chunk.used)
      chunk.used = start + length
      return chunk.bytes.subarray(start, chunk.used)
    })
  }

  #chunkFor(length: number): Chunk {
    const last = this.#chunks.at(-1)
    if (last !== undefined && last.used + length <= last.bytes.length) return last
    const chunk = this.#memory.take(Math.max(length, CHUNK_BYTES))
    this.#chunks.push(chunk)
    return chunk
  }

  #write(): void {
    while (this.#writes < WRITES_MAX && this.#stream !== undefined) {
      const chunk = this.#chunks.shift()
      if (chunk === undefined) return
      this.#writes++
      this.#stream.write(chunk.bytes.subarray(0, chunk.used), (error) => {
        this.#writes--
        if (error) return
        this.#memory.give(chunk)
        this.#write()
      })
    }
  }
}
