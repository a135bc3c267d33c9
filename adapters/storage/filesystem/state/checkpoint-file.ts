import { ByteReader } from '../files/bytes.ts'
import { corrupt, decodeOrThrowCorrupt, mapFileErrors } from '../files/errors.ts'
import { fileName } from '../files/file-header.ts'
import { type File, type Files, readExactly } from '../files/files.ts'
import { FRAME_HEADER_BYTES, framePayload, payloadEnd } from '../files/frame.ts'
import { SequentialReader } from '../files/sequential-reader.ts'
import {
  CHECKPOINT_FRAME_BYTES,
  CHECKPOINT_FRAME_BYTES_MAX,
  CheckpointContent,
  readCounts,
} from './checkpoint.ts'
import { CheckpointIndex, readTrailer, TRAILER_BYTES } from './checkpoint-index.ts'
import { readSegment, readUse } from './field-codec.ts'
import { State } from './state.ts'
import type { PagePlace, PageReader } from './stored-pages.ts'

/** The first format version whose checkpoints have an index. Earlier ones are read as a whole. */
export const INDEXED_VERSION = 7

/** The state in a checkpoint, whose pages are read on use. */
export interface OpenCheckpoint {
  readonly state: State
  /** How many logs it has. */
  readonly logs: number
  /** Length of the file. */
  readonly bytes: number
  /** Waits for the reads in progress. Later ones reject. */
  readonly close: () => Promise<void>
}

/**
 * Opens a checkpoint. Rejects with `StorageFailure` of kind `corrupt` if what an opening reads is damaged.
 */
export async function openCheckpoint(files: Files, number: number): Promise<OpenCheckpoint> {
  const name = fileName('checkpoint', number)
  const reader = await SequentialReader.open(files, name, true)
  try {
    const { salt, version } = await reader.header()
    if (version < INDEXED_VERSION) {
      const state = await readWhole(reader, salt)
      return { state, logs: state.logs.storedSize, bytes: reader.size, close: async () => {} }
    }
    const { size } = reader
    const pages = new CheckpointPages(name, salt, size, await mapFileErrors(files.open(name, 'read')))
    try {
      const read = await readIndexed(reader, salt, pages)
      return { ...read, bytes: size, close: () => pages.close() }
    } catch (error) {
      await pages.close()
      throw error
    }
  } finally {
    await reader.close()
  }
}

async function readWhole(reader: SequentialReader, salt: number): Promise<State> {
  const content = new CheckpointContent()
  for (let isLast = false; !isLast; ) {
    isLast = await decodeNext(reader, salt, (payload) => content.add(payload))
  }
  return content.state
}

/** Reads the index, the segments and the counts, but neither documents nor logs. */
async function readIndexed(
  reader: SequentialReader,
  salt: number,
  pages: CheckpointPages,
): Promise<Pick<OpenCheckpoint, 'state' | 'logs'>> {
  const state = new State()
  const { offset: start, size } = reader
  const end = size - FRAME_HEADER_BYTES - TRAILER_BYTES
  if (end < start) throw corrupt(reader.name, size, 'the last frame is missing')
  seek(reader, end)
  const trailer = await decodeNext(reader, salt, readTrailer)
  seek(reader, start)
  while (reader.offset < trailer.segmentsEnd) {
    await decodeNext(reader, salt, (payload) => {
      const fields = fieldsOf(payload, 'S')
      while (fields.left > 0) state.addSegment(readSegment(fields)).restore(readUse(fields))
    })
  }
  // What may be compacted was decided before: looking for it reads all logs.
  state.hasChangedSegments = false
  seek(reader, trailer.counts)
  const logs = await decodeNext(reader, salt, (payload) => {
    const [segments, , count] = readCounts(fieldsOf(payload, 'E'), state)
    if (segments !== state.segments.size) {
      throw new RangeError(`it has ${state.segments.size} segments; expected ${segments}`)
    }
    return count!
  })
  seek(reader, trailer.index)
  const index = new CheckpointIndex()
  while (reader.offset < end) {
    await decodeNext(reader, salt, (payload) => index.add(fieldsOf(payload, 'I')))
  }
  const { count } = index.logs.buckets
  if (logs > 0 && !Number.isInteger(Math.log2(count))) {
    throw corrupt(
      reader.name,
      trailer.index,
      `the index has ${count} buckets of hashes; expected a power of two`,
    )
  }
  for (const [collection, places] of index.documents) state.catalog.setPlaces(collection, places, pages)
  state.logs.setPlaces(index.logs, state.nextLog - 1, pages)
  return { state, logs }
}

function seek(reader: SequentialReader, offset: number): void {
  reader.skip(offset - reader.offset)
}

async function decodeNext<Result>(
  reader: SequentialReader,
  salt: number,
  decode: (payload: Buffer) => Result,
): Promise<Result> {
  const { name, offset } = reader
  const payload = await reader.frame(salt, CHECKPOINT_FRAME_BYTES_MAX)
  if (payload === undefined) throw corrupt(name, offset, 'the last frame is missing')
  return decodeOrThrowCorrupt(name, offset, () => decode(payload))
}

function fieldsOf(payload: Buffer, letter: string): ByteReader {
  const fields = new ByteReader(payload)
  const found = String.fromCharCode(fields.byte())
  if (found !== letter) throw new RangeError(`a frame has letter ${found}; expected ${letter}`)
  return fields
}

/** Length of the reusable buffer, in bytes. A longer frame, which has a single item, gets its own. */
const FIND_BUFFER_BYTES = 2 * CHECKPOINT_FRAME_BYTES

/** Reads single pages of a checkpoint. */
class CheckpointPages implements PageReader {
  readonly #name: string
  readonly #salt: number
  readonly #size: number
  readonly #file: File
  readonly #reading = new Set<Promise<unknown>>()
  /** The buffer of the next search. Undefined while one uses it: others at the same time get their own. */
  #freeBuffer: Buffer<ArrayBuffer> | undefined
  #closing: Promise<void> | undefined

  constructor(name: string, salt: number, size: number, file: File) {
    this.#name = name
    this.#salt = salt
    this.#size = size
    this.#file = file
  }

  async read<Page>({ offset, bytes }: PagePlace, decode: (payload: Buffer) => Page): Promise<Page> {
    const frame = await this.#read(offset, bytes)
    return decodeOrThrowCorrupt(this.#name, offset, () => decode(this.#payload(frame)))
  }

  find<Item>({ offset, bytes }: PagePlace, search: (payload: Buffer) => Item): Item | Promise<Item> {
    this.#assertReadable(offset, bytes)
    const isShort = bytes <= FIND_BUFFER_BYTES
    const free = isShort ? this.#freeBuffer : undefined
    const buffer = free ?? Buffer.allocUnsafeSlow(Math.max(bytes, FIND_BUFFER_BYTES))
    if (isShort) this.#freeBuffer = undefined
    const frame = buffer.subarray(0, bytes)
    const finish = (filled: number): Item => {
      if (filled < bytes) throw corrupt(this.#name, offset + filled, 'truncated')
      const item = decodeOrThrowCorrupt(this.#name, offset, () => search(this.#payload(frame)))
      if (isShort) this.#freeBuffer = buffer
      return item
    }
    const reading = this.#file.read(frame, offset)
    return reading instanceof Promise ? this.#track(mapFileErrors(reading)).then(finish) : finish(reading)
  }

  async readAhead<Page>(places: readonly PagePlace[], decode: (payload: Buffer) => Page): Promise<Page[]> {
    const start = places[0]!.offset
    let end = start
    for (const { offset, bytes } of places) if (offset === end) end += bytes
    const frames = await this.#read(start, end - start)
    const pages: Page[] = []
    for (const { offset, bytes } of places) {
      if (offset + bytes > end) break
      // Copied, because a view would keep all of them in memory.
      const frame = Buffer.allocUnsafeSlow(bytes)
      frames.copy(frame, 0, offset - start)
      try {
        pages.push(decode(this.#payload(frame)))
      } catch {
        break
      }
    }
    return pages
  }

  #read(offset: number, bytes: number): Promise<Buffer> {
    this.#assertReadable(offset, bytes)
    return this.#track(mapFileErrors(readExactly(this.#file, this.#name, offset, bytes)))
  }

  async #track<Result>(reading: Promise<Result>): Promise<Result> {
    this.#reading.add(reading)
    try {
      return await reading
    } finally {
      this.#reading.delete(reading)
    }
  }

  #assertReadable(offset: number, bytes: number): void {
    if (this.#closing !== undefined) throw new Error(`${this.#name} is closed`)
    // Memory is allocated only for what the file can have.
    if (bytes > CHECKPOINT_FRAME_BYTES_MAX || offset + bytes > this.#size) {
      throw corrupt(this.#name, offset, 'a frame is incomplete or damaged')
    }
  }

  #payload(frame: Buffer): Buffer {
    const payload = payloadEnd(frame, 0) === frame.length ? framePayload(frame, 0, this.#salt) : undefined
    if (payload === undefined) throw new RangeError('a frame is incomplete or damaged')
    return payload
  }

  close(): Promise<void> {
    this.#closing ??= Promise.allSettled(this.#reading).then(() => this.#file.close())
    return this.#closing
  }
}
