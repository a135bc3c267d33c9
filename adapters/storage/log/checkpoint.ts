import type { Collection } from '../../../src/storage/contract.ts'
import type { Medium, NewFile, ReadableMedium } from '../media/medium.ts'
import { ByteReader, ByteWriter } from './bytes.ts'
import { readList } from './changes.ts'
import { dueOfEntry } from './due-logs.ts'
import {
  beginFrame,
  corrupt,
  decodeHeader,
  decodeOrThrowCorrupt,
  encodeHeader,
  endFrame,
  fileName,
  HEADER_BYTES,
  readFrame,
} from './format.ts'
import { SequentialReader } from './sequential-reader.ts'
import { type Segment, State } from './state.ts'
import { type SnapshotItem, type Table, type TablePart, writeEntry } from './table.ts'

/** Parts have about this length: a look-up goes through one of them. */
const PART_BYTES = 16_384
/** Shorter parts are joined with what follows. */
export const PART_BYTES_MIN = 4_096

const DOCUMENTS = 1
const LOGS = 2
const SEGMENTS = 3
const END = 4

/** Writes a checkpoint, part by part, and keeps the parts for the tables. */
export class CheckpointWriter {
  readonly #file: NewFile
  readonly #writer = new ByteWriter()
  readonly #entries = new ByteWriter(2 * PART_BYTES)
  readonly #scratch = new ByteWriter()
  #kind = 0
  #collection = ''
  #due: number | null = null
  #parts: TablePart[] = []
  #frames = 0
  bytes = HEADER_BYTES

  private constructor(file: NewFile) {
    this.#file = file
  }

  /** @param number That of the first journal whose changes it does not hold. */
  static async create(medium: Medium, number: number): Promise<CheckpointWriter> {
    const file = await medium.create(fileName('checkpoint', number))
    await file.write(encodeHeader({ kind: 'checkpoint', number, firstGroup: 0, salt: 0 }))
    return new CheckpointWriter(file)
  }

  /** Begins the documents of a collection; without one, the logs. */
  begin(collection?: Collection): void {
    this.#kind = collection === undefined ? LOGS : DOCUMENTS
    this.#collection = collection ?? ''
    this.#parts = []
  }

  async add<Value extends object>(table: Table<Value>, item: SnapshotItem<Value>): Promise<void> {
    if ('part' in item) {
      await this.#endPart()
      await this.#writePart(item.part)
      return
    }
    const start = this.#entries.length
    if ('value' in item) writeEntry(this.#entries, this.#scratch, table.codec, item.key, item.value)
    else this.#entries.raw(item.entry)
    if (this.#kind === LOGS) this.#noteDue(dueOfEntry(this.#entries.bytes.subarray(start)))
    if (this.#entries.length >= PART_BYTES) await this.#endPart()
  }

  /** Whether an unchanged part can follow as it is. */
  get takesParts(): boolean {
    return this.#entries.length === 0 || this.#entries.length >= PART_BYTES_MIN
  }

  /** Ends what was begun. Resolves to its parts. */
  async end(): Promise<readonly TablePart[]> {
    await this.#endPart()
    return this.#parts
  }

  /** Gives the file its name. Durable once it resolves. */
  async finish(segments: Iterable<Segment>, nextVersion: number, nextSegment: number): Promise<void> {
    const used = [...segments]
    await this.#writeFrame(SEGMENTS, (writer) => {
      writer.varint(used.length)
      for (const { number, bytes, runs, runBytes } of used) {
        for (const value of [number, bytes, runs, runBytes]) writer.varint(value)
      }
    })
    await this.#writeFrame(END, (writer) => {
      for (const value of [this.#frames, nextVersion, nextSegment]) writer.varint(value)
    })
    await this.#file.finish()
  }

  abandon(): Promise<void> {
    return this.#file.abandon()
  }

  #noteDue(due: number | null): void {
    if (due !== null) this.#due = Math.min(due, this.#due ?? due)
  }

  async #endPart(): Promise<void> {
    if (this.#entries.length === 0) return
    const part = { entries: Buffer.from(this.#entries.bytes), due: this.#due }
    this.#entries.truncate(0)
    this.#due = null
    await this.#writePart(part)
  }

  async #writePart(part: TablePart): Promise<void> {
    this.#parts.push(part)
    await this.#writeFrame(this.#kind, (writer) => {
      if (this.#kind === DOCUMENTS) writer.string(this.#collection)
      else writer.optional(part.due)
      writer.raw(part.entries)
    })
  }

  async #writeFrame(kind: number, write: (writer: ByteWriter) => void): Promise<void> {
    const writer = this.#writer
    writer.truncate(0)
    beginFrame(writer)
    writer.byte(kind)
    write(writer)
    endFrame(writer, 0, 0, 0)
    this.#frames++
    this.bytes += writer.length
    await this.#file.write(writer.bytes)
  }
}

/** A frame of a checkpoint, after its kind. */
type CheckpointFrame =
  | { readonly kind: 'documents'; readonly collection: Collection; readonly part: TablePart }
  | { readonly kind: 'logs'; readonly part: TablePart }
  | { readonly kind: 'segments'; readonly segments: readonly Segment[] }
  | {
      readonly kind: 'end'
      readonly frames: number
      readonly nextVersion: number
      readonly nextSegment: number
    }

/** Decodes a payload. Throws `RangeError` if it is malformed. */
function decodeCheckpointFrame(payload: Buffer): CheckpointFrame {
  const reader = new ByteReader(payload)
  const kind = reader.byte()
  if (kind === DOCUMENTS) {
    const collection = reader.string() as Collection
    return { kind: 'documents', collection, part: { entries: payload.subarray(reader.offset), due: null } }
  }
  if (kind === LOGS) {
    const due = reader.optional()
    return { kind: 'logs', part: { entries: payload.subarray(reader.offset), due } }
  }
  if (kind === SEGMENTS) {
    const segments = readList(reader, () => ({
      number: reader.varint(),
      bytes: reader.varint(),
      runs: reader.varint(),
      runBytes: reader.varint(),
    }))
    return { kind: 'segments', segments }
  }
  if (kind !== END) throw new RangeError(`unknown kind of frame: ${kind}`)
  return { kind: 'end', frames: reader.varint(), nextVersion: reader.varint(), nextSegment: reader.varint() }
}

/** Reads a checkpoint. Rejects with a `corrupt` failure that names the place if it is damaged. */
export async function readCheckpoint(medium: ReadableMedium, number: number, bytes: number): Promise<State> {
  const name = fileName('checkpoint', number)
  const file = new SequentialReader(medium, name, bytes)
  decodeHeader(await file.bytes(0, HEADER_BYTES), name)
  const state = new State()
  const logs: TablePart[] = []
  const documents = new Map<Collection, TablePart[]>()
  let offset = HEADER_BYTES
  for (let frames = 1; ; frames++) {
    if (offset >= bytes) throw corrupt(name, offset, 'the end is missing')
    const frameStart = offset
    const found = await file.frame(offset)
    const frame = decodeOrThrowCorrupt(name, offset, () => {
      const { payload, end } = readFrame(found, 0, 0)
      offset += end
      return decodeCheckpointFrame(payload)
    })
    if (frame.kind === 'logs') logs.push(frame.part)
    else if (frame.kind === 'segments') {
      for (const segment of frame.segments) state.segments.set(segment.number, segment)
    } else if (frame.kind === 'documents') {
      const parts = documents.get(frame.collection) ?? []
      documents.set(frame.collection, parts)
      parts.push(frame.part)
    } else {
      if (frame.frames !== frames - 1 || offset !== bytes)
        throw corrupt(name, frameStart, 'the end is misplaced')
      state.nextVersion = frame.nextVersion
      state.nextSegment = frame.nextSegment
      break
    }
  }
  for (const [collection, parts] of documents) state.documents(collection).replaceStored(parts)
  state.logs.replaceStored(logs)
  state.due.replaceParts(logs, () => false)
  return state
}
