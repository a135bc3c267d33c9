import type { Collection } from '../../../../src/storage/contract.ts'
import { ByteReader, ByteWriter } from '../files/bytes.ts'
import type { Files } from '../files/files.ts'
import { beginFrame, endFrame } from '../files/frame.ts'
import { NewFile } from '../files/new-file.ts'
import type { CollectionSnapshot } from './catalog.ts'
import { CheckpointIndex, type Trailer, writeTrailer } from './checkpoint-index.ts'
import { readSegment, readUse, writeSegment, writeUse } from './field-codec.ts'
import { type IdHash, IdHashes } from './id-hashes.ts'
import type { SegmentFacts, SegmentUse } from './segment.ts'
import { State } from './state.ts'
import { type KeyedDocument, keyBytes, writeDocument } from './stored-documents.ts'
import { dueOf, type LogFacts, logNumber, readLogKey, writeHashes, writeLog } from './stored-logs.ts'
import { EMPTY_BUCKET, type PagePlace } from './stored-pages.ts'

/**
 * Limits the memory of a frame, and what is read to find an item in it; a frame with a single item may be
 * larger.
 */
export const CHECKPOINT_FRAME_BYTES = 4 * 1024
/**
 * The largest frame: a log with millions of runs. A damaged length is also limited by the length of the file.
 */
export const CHECKPOINT_FRAME_BYTES_MAX = 1024 * 1_048_576

/** Items in chunks, each of which is in memory at a time. */
type Chunks<Item> = AsyncIterable<Iterable<Item>> | Iterable<Iterable<Item>>

/** The content of a checkpoint. */
export interface Snapshot {
  /** Number of the checkpoint, and of the first journal that it does not cover. */
  readonly journal: number
  readonly nextLog: number
  readonly nextVersion: number
  readonly segments: Iterable<SegmentFacts & SegmentUse>
  readonly collections: readonly CollectionSnapshot[]
  /** Ascending by number. Bytes as a checkpoint stores them, unless the log was changed. */
  readonly logs: Chunks<Buffer | LogFacts>
}

/**
 * Writes the checkpoint and resolves to its length in bytes. It is durable once the directory is synced.
 * Rejects with `RangeError` instead of writing a frame that cannot be read. `frameBytesMax` is for tests.
 */
export async function writeCheckpoint(
  files: Files,
  snapshot: Snapshot,
  isAborted: () => boolean,
  frameBytesMax = CHECKPOINT_FRAME_BYTES_MAX,
): Promise<number> {
  const file = await NewFile.create(files, 'checkpoint', snapshot.journal)
  try {
    await new CheckpointWriter(file, { isAborted, frameBytesMax }).write(snapshot)
    await file.finish()
    return file.length
  } catch (error) {
    await file.abandon()
    throw error
  }
}

interface Limits {
  readonly isAborted: () => boolean
  readonly frameBytesMax: number
}

/** The common properties of the frames of a list. */
interface FrameKind<Item> {
  readonly letter: string
  /** The collection of documents. */
  readonly collection?: Collection | undefined
  readonly write: (writer: ByteWriter, item: Item) => void
  /** Describes a frame with these items in the index. */
  readonly addToIndex?: ((items: readonly Item[], place: PagePlace) => void) | undefined
}

class CheckpointWriter {
  readonly #file: NewFile
  readonly #limits: Limits
  readonly #index = new CheckpointIndex()
  readonly #hashes = new IdHashes()

  constructor(file: NewFile, limits: Limits) {
    this.#file = file
    this.#limits = limits
  }

  async write({ nextLog, nextVersion, ...snapshot }: Snapshot): Promise<void> {
    const segments = await this.#writeList(SEGMENTS, [snapshot.segments])
    const segmentsEnd = this.#file.length
    let documents = 0
    for (const { collection, documents: chunks } of snapshot.collections) {
      documents += await this.#writeList(this.#documentsOf(collection), chunks)
    }
    const logs = await this.#writeList(this.#logs, snapshot.logs)
    const counts = this.#file.length
    await this.#writeList(COUNTS, [[nextLog, nextVersion, segments, documents, logs]])
    await this.#writeHashes()
    const index = this.#file.length
    await this.#writeList(INDEX, [this.#index.entries()])
    await this.#writeList(TRAILER, [[{ segmentsEnd, counts, index }]])
  }

  /** Resolves to the number of items. */
  async #writeList<Item>(kind: FrameKind<Item>, chunks: Chunks<Item>): Promise<number> {
    let count = 0
    let frame: Frame<Item> | undefined
    for await (const chunk of chunks) {
      if (this.#limits.isAborted()) throw new Error('the storage is closing')
      for (const item of chunk) {
        count++
        frame ??= new Frame(kind, this.#file.salt)
        if (frame.add(item)) continue
        await this.#end(frame)
        frame = new Frame(kind, this.#file.salt)
        frame.add(item)
      }
    }
    if (frame !== undefined) await this.#end(frame)
    return count
  }

  async #end<Item>(frame: Frame<Item>): Promise<void> {
    const bytes = frame.end()
    if (bytes.length > this.#limits.frameBytesMax) {
      const what = `a checkpoint frame has ${bytes.length} bytes`
      throw new RangeError(`${what}; the limit is ${this.#limits.frameBytesMax}`)
    }
    const place = { offset: this.#file.length, bytes: bytes.length }
    this.#file.add(bytes)
    frame.kind.addToIndex?.(frame.items, place)
    await this.#file.drain()
  }

  #documentsOf(collection: Collection): FrameKind<Buffer | KeyedDocument> {
    return {
      letter: 'D',
      collection,
      write: encodedOr(writeDocument),
      addToIndex: ([first], place) => {
        const firstKey = Buffer.isBuffer(first) ? keyBytes(first) : Buffer.from(first!.key)
        this.#index.addDocuments(collection, place, firstKey)
      },
    }
  }

  readonly #logs: FrameKind<Buffer | LogFacts> = {
    letter: 'L',
    write: encodedOr(writeLog),
    addToIndex: (items, place) => {
      let due = Number.POSITIVE_INFINITY
      for (const item of items) {
        if (!Buffer.isBuffer(item)) {
          due = Math.min(due, dueOf(item) ?? Number.POSITIVE_INFINITY)
          this.#hashes.add(Buffer.from(item.id), item.number)
          continue
        }
        const fields = new ByteReader(item)
        const key = readLogKey(fields)
        due = Math.min(due, key.due)
        this.#hashes.add(fields.raw(fields.varint()), key.number)
      }
      const [first] = items
      const number = Buffer.isBuffer(first) ? logNumber(first) : first!.number
      this.#index.logs.add(place, number, due)
    },
  }

  /** A frame for each bucket. */
  async #writeHashes(): Promise<void> {
    const kind: FrameKind<readonly IdHash[]> = {
      letter: 'H',
      write: writeHashes,
      addToIndex: (_, place) => this.#index.logs.buckets.add(place),
    }
    for (let bucket = 0; bucket < 2 ** this.#hashes.bucketBits; bucket++) {
      const entries = this.#hashes.bucket(bucket)
      if (entries.length === 0) this.#index.logs.buckets.add(EMPTY_BUCKET)
      else await this.#writeList(kind, [[entries]])
    }
  }
}

/** A frame that is being written. */
class Frame<Item> {
  readonly kind: FrameKind<Item>
  readonly items: Item[] = []
  readonly #salt: number
  readonly #writer = new ByteWriter(CHECKPOINT_FRAME_BYTES + 1024)
  readonly #start: number

  constructor(kind: FrameKind<Item>, salt: number) {
    this.kind = kind
    this.#salt = salt
    this.#start = beginFrame(this.#writer)
    this.#writer.byte(kind.letter.charCodeAt(0))
    if (kind.collection !== undefined) this.#writer.string(kind.collection)
  }

  /** Returns false, and adds nothing, if another item has no room. */
  add(item: Item): boolean {
    const { length } = this.#writer
    if (length >= CHECKPOINT_FRAME_BYTES) return false
    this.kind.write(this.#writer, item)
    if (this.#writer.length > CHECKPOINT_FRAME_BYTES && this.items.length > 0) {
      this.#writer.truncate(length)
      return false
    }
    this.items.push(item)
    return true
  }

  end(): Buffer {
    endFrame(this.#writer, this.#start, this.#salt)
    return this.#writer.bytes
  }
}

const SEGMENTS: FrameKind<SegmentFacts & SegmentUse> = {
  letter: 'S',
  write(writer, segment) {
    writeSegment(writer, segment)
    writeUse(writer, segment)
  },
}

const COUNTS: FrameKind<number> = { letter: 'E', write: (writer, count) => writer.varint(count) }

const INDEX: FrameKind<(writer: ByteWriter) => void> = {
  letter: 'I',
  write: (writer, entry) => entry(writer),
}

const TRAILER: FrameKind<Trailer> = { letter: 'T', write: writeTrailer }

function encodedOr<Item>(write: (writer: ByteWriter, item: Item) => void) {
  return (writer: ByteWriter, item: Buffer | Item): void => {
    if (Buffer.isBuffer(item)) writer.raw(item)
    else write(writer, item)
  }
}

/** Collects the content of a checkpoint frame by frame. Keeps the bytes of documents and logs. */
export class CheckpointContent {
  readonly state = new State()

  /** Adds a frame. Returns whether it has the counts. Throws `RangeError` if it is malformed. */
  add(payload: Buffer): boolean {
    const { state } = this
    const fields = new ByteReader(payload)
    const letter = String.fromCharCode(fields.byte())
    switch (letter) {
      case 'S':
        while (fields.left > 0) state.addSegment(readSegment(fields)).restore(readUse(fields))
        return false
      case 'D': {
        const collection = fields.string() as Collection
        state.catalog.addStored(collection, fields.raw(fields.left))
        return false
      }
      case 'L':
        state.logs.addStored(fields.raw(fields.left))
        return false
      case 'E':
        checkCounts(state, readCounts(fields, state))
        return true
      default:
        throw new RangeError(`unknown kind of frame: ${letter}`)
    }
  }
}

/**
 * Reads the frame with the counts, and sets the counters. Returns how many segments, documents and logs there
 * are.
 */
export function readCounts(fields: ByteReader, state: State): readonly number[] {
  state.nextLog = fields.varint()
  state.nextVersion = fields.varint()
  return [fields.varint(), fields.varint(), fields.varint()]
}

function checkCounts(state: State, counts: readonly number[]): void {
  const found = [state.segments.size, state.catalog.storedSize, state.logs.storedSize]
  if (found.some((count, i) => count !== counts[i])) {
    throw new RangeError(
      `it has ${found.join(', ')} segments, documents and logs; expected ${counts.join(', ')}`,
    )
  }
}
