import type { Collection } from '../../../../src/storage/contract.ts'
import { ByteWriter } from '../files/bytes.ts'
import type { Files } from '../files/files.ts'
import { beginFrame, endFrame } from '../files/frame.ts'
import { NewFile } from '../files/new-file.ts'
import type { CollectionSnapshot } from '../state/catalog.ts'
import { writeSegment, writeUse } from '../state/field-codec.ts'
import { type LogFacts, writeLog } from '../state/log-codec.ts'
import type { SegmentFacts, SegmentUse } from '../state/segment.ts'
import { type KeyedDocument, writeDocument } from '../state/stored-documents.ts'

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
  /** Of documents. */
  readonly collection?: Collection
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
