import type { Collection } from '../../../../src/storage/contract.ts'
import { ByteReader, ByteWriter } from '../files/bytes.ts'
import { corrupt } from '../files/errors.ts'
import type { Files } from '../files/files.ts'
import { beginFrame, endFrame } from '../files/frame.ts'
import { NewFile } from '../files/new-file.ts'
import type { SequentialReader } from '../files/sequential-reader.ts'
import type { CollectionSnapshot } from './catalog.ts'
import { readSegment, readUse, writeSegment, writeUse } from './field-codec.ts'
import type { SegmentFacts, SegmentUse } from './segment.ts'
import { State } from './state.ts'
import { type KeyedDocument, writeDocument } from './stored-documents.ts'
import { type LogFacts, writeLog } from './stored-logs.ts'

/** Limits the memory of a frame; a frame with a single item may be larger. */
const FRAME_BYTES = 64 * 1024
/**
 * The largest frame: a log with millions of runs. A damaged length is also limited by the length of the file.
 */
export const CHECKPOINT_FRAME_BYTES_MAX = 1024 * 1_048_576

/** The content of a checkpoint. */
export interface Snapshot {
  /** Number of the checkpoint, and of the first journal that it does not cover. */
  readonly journal: number
  readonly nextLog: number
  readonly nextVersion: number
  readonly segments: Iterable<SegmentFacts & SegmentUse>
  readonly collections: readonly CollectionSnapshot[]
  /** Ascending by number. Bytes as a checkpoint stores them, unless the log was loaded. */
  readonly logs: Iterable<Buffer | LogFacts>
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
    const limits = { isAborted, frameBytesMax }
    const segments = await writeList(file, SEGMENTS, snapshot.segments, limits)
    let documents = 0
    for (const { collection, documents: items } of snapshot.collections) {
      documents += await writeList(file, documentsOf(collection), items, limits)
    }
    const logs = await writeList(file, LOGS, snapshot.logs, limits)
    const { nextLog, nextVersion } = snapshot
    await writeList(file, END, [nextLog, nextVersion, segments, documents, logs], limits)
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

/** What the frames of a list have in common. */
interface FrameKind<Item> {
  readonly letter: string
  /** The collection of documents. */
  readonly collection?: Collection | undefined
  readonly write: (writer: ByteWriter, item: Item) => void
}

const SEGMENTS: FrameKind<SegmentFacts & SegmentUse> = {
  letter: 'S',
  write(writer, segment) {
    writeSegment(writer, segment)
    writeUse(writer, segment)
  },
}

const documentsOf = (collection: Collection): FrameKind<Buffer | KeyedDocument> => {
  return { letter: 'D', collection, write: encodedOr(writeDocument) }
}

const LOGS: FrameKind<Buffer | LogFacts> = { letter: 'L', write: encodedOr(writeLog) }

const END: FrameKind<number> = { letter: 'E', write: (writer, count) => writer.varint(count) }

/** Resolves to the number of items. */
async function writeList<Item>(
  file: NewFile,
  { letter, collection, write }: FrameKind<Item>,
  items: Iterable<Item>,
  { isAborted, frameBytesMax }: Limits,
): Promise<number> {
  let count = 0
  const rest = items[Symbol.iterator]()
  for (let next = rest.next(); next.done !== true; ) {
    if (isAborted()) throw new Error('the storage is closing')
    const writer = new ByteWriter(FRAME_BYTES + 4096)
    const start = beginFrame(writer)
    writer.byte(letter.charCodeAt(0))
    if (collection !== undefined) writer.string(collection)
    const { length: empty } = writer
    for (; next.done !== true && writer.length < FRAME_BYTES; next = rest.next(), count++) {
      const { length } = writer
      write(writer, next.value)
      if (writer.length > FRAME_BYTES && length > empty) {
        writer.truncate(length)
        break
      }
    }
    if (writer.length > frameBytesMax) {
      const what = `a checkpoint frame has ${writer.length} bytes`
      throw new RangeError(`${what}; the limit is ${frameBytesMax}`)
    }
    endFrame(writer, start, file.salt)
    file.add(writer.bytes)
    await file.drain()
  }
  return count
}

function encodedOr<Item>(write: (writer: ByteWriter, item: Item) => void) {
  return (writer: ByteWriter, item: Buffer | Item): void => {
    if (Buffer.isBuffer(item)) writer.raw(item)
    else write(writer, item)
  }
}

/** Reads the state from a checkpoint. The reader must keep its windows. */
export async function readCheckpoint(reader: SequentialReader): Promise<State> {
  const { salt } = await reader.header()
  const content = new CheckpointContent()
  for (;;) {
    const { offset } = reader
    const payload = await reader.frame(salt, CHECKPOINT_FRAME_BYTES_MAX)
    if (payload === undefined) throw corrupt(reader.name, offset, 'the last frame is missing')
    try {
      if (content.add(payload)) return content.state
    } catch (error) {
      throw corrupt(reader.name, offset, (error as Error).message)
    }
  }
}

/** Collects the content of a checkpoint frame by frame. Keeps the bytes of documents and logs. */
export class CheckpointContent {
  readonly state = new State()

  /** Adds a frame. Returns whether it was the last one. Throws `RangeError` if it is malformed. */
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
        readEnd(fields, state)
        return true
      default:
        throw new RangeError(`unknown kind of frame: ${letter}`)
    }
  }
}

/** Compares the counts with the items found. */
function readEnd(fields: ByteReader, state: State): void {
  state.nextLog = fields.varint()
  state.nextVersion = fields.varint()
  const counts = [fields.varint(), fields.varint(), fields.varint()]
  const found = [state.segments.size, state.catalog.storedSize, state.logs.storedSize]
  if (found.some((count, i) => count !== counts[i])) {
    throw new RangeError(
      `it has ${found.join(', ')} segments, documents and logs; expected ${counts.join(', ')}`,
    )
  }
}
