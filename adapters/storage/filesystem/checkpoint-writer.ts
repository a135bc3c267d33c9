import type { Head } from '../../../src/storage/contract.ts'
import { ByteWriter } from './bytes.ts'
import type { CatalogEntry } from './catalog.ts'
import { writeHead, writeRun, writeSegment } from './field-codec.ts'
import type { Files } from './files.ts'
import { beginFrame, endFrame } from './frame.ts'
import { NewFile } from './new-file.ts'
import type { RunFacts } from './run.ts'
import type { SegmentFacts } from './segment.ts'

/** A frame has no more, unless it has but one item: a bound for what must be in memory at once. */
const FRAME_BYTES = 64 * 1024
/** The largest frame: that of a log with millions of places. A damaged length is bounded by the file, too. */
export const CHECKPOINT_FRAME_BYTES_MAX = 1024 * 1_048_576

/** What a checkpoint keeps. */
export interface Snapshot {
  /** Number of the first journal that it does not cover, and of the checkpoint. */
  readonly journal: number
  readonly nextLog: number
  readonly nextVersion: number
  readonly segments: readonly SegmentFacts[]
  readonly documents: readonly CatalogEntry[]
  readonly logs: readonly LogFacts[]
}

export interface LogFacts {
  readonly number: number
  readonly id: string
  readonly head: Head
  readonly runs: readonly RunFacts[]
}

/**
 * Makes the checkpoint and resolves to its length. It is durable, with its name, once the directory is synced. Rejects
 * with `RangeError` rather than make one that cannot be read. `frameBytesMax` is for tests.
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
    await writeList(file, 'S', snapshot.segments, writeSegment, limits)
    await writeList(file, 'D', snapshot.documents, writeDocument, limits)
    await writeList(file, 'L', snapshot.logs, writeLog, limits)
    const { nextLog, nextVersion, segments, documents, logs } = snapshot
    const counts = [nextLog, nextVersion, segments.length, documents.length, logs.length]
    await writeList(file, 'E', counts, (writer, count) => writer.varint(count), limits)
    await file.finish()
    return file.length
  } catch (error) {
    await file.abandon()
    throw error
  }
}

async function writeList<Item>(
  file: NewFile,
  letter: string,
  items: readonly Item[],
  write: (writer: ByteWriter, item: Item) => void,
  { isAborted, frameBytesMax }: { readonly isAborted: () => boolean; readonly frameBytesMax: number },
): Promise<void> {
  for (let index = 0; index < items.length; ) {
    if (isAborted()) throw new Error('the storage is being closed')
    const writer = new ByteWriter(FRAME_BYTES + 4096)
    const start = beginFrame(writer)
    writer.byte(letter.charCodeAt(0))
    write(writer, items[index++]!)
    while (index < items.length && writer.length < FRAME_BYTES) {
      const { length } = writer
      write(writer, items[index]!)
      if (writer.length > FRAME_BYTES) {
        writer.truncate(length)
        break
      }
      index++
    }
    if (writer.length > frameBytesMax) {
      const what = `a frame of ${writer.length} bytes`
      throw new RangeError(`${what} is more than the ${frameBytesMax} that a checkpoint can have`)
    }
    endFrame(writer, start, file.salt)
    file.add(writer.bytes)
    await file.drain()
  }
}

function writeDocument(writer: ByteWriter, { collection, key, version, text }: CatalogEntry): void {
  writer.string(collection)
  writer.string(key)
  writer.varint(version)
  writer.string(text)
}

function writeLog(writer: ByteWriter, { number, id, head, runs }: LogFacts): void {
  writer.varint(number)
  writer.string(id)
  writeHead(writer, head)
  writer.varint(runs.length)
  for (const run of runs) writeRun(writer, run)
}
