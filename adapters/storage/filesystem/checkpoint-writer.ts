import type { Head } from '../../../src/storage/contract.ts'
import { ByteWriter } from './bytes.ts'
import type { CatalogEntry } from './catalog.ts'
import { writeHead, writeRun, writeSegment } from './field-codec.ts'
import type { Files } from './files.ts'
import { beginFrame, endFrame } from './frame.ts'
import { NewFile } from './new-file.ts'
import type { RunFacts } from './run.ts'
import type { SegmentFacts } from './segment.ts'

/** A frame is ended when it is so long: a bound for what must be in memory at once. */
const FRAME_BYTES = 64 * 1024

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

/** Makes the checkpoint and resolves to its length. It is durable, with its name, once the directory is synced. */
export async function writeCheckpoint(
  files: Files,
  snapshot: Snapshot,
  isAborted: () => boolean,
): Promise<number> {
  const file = await NewFile.create(files, 'checkpoint', snapshot.journal)
  try {
    await writeList(file, 'S', snapshot.segments, writeSegment, isAborted)
    await writeList(file, 'D', snapshot.documents, writeDocument, isAborted)
    await writeList(file, 'L', snapshot.logs, writeLog, isAborted)
    const { nextLog, nextVersion, segments, documents, logs } = snapshot
    const counts = [nextLog, nextVersion, segments.length, documents.length, logs.length]
    await writeList(file, 'E', counts, (writer, count) => writer.varint(count), isAborted)
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
  isAborted: () => boolean,
): Promise<void> {
  for (let index = 0; index < items.length; ) {
    if (isAborted()) throw new Error('the storage is being closed')
    const writer = new ByteWriter(FRAME_BYTES + 4096)
    const start = beginFrame(writer)
    writer.byte(letter.charCodeAt(0))
    while (index < items.length && writer.length < FRAME_BYTES) write(writer, items[index++]!)
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
