import type { Collection } from '../../../src/storage/contract.ts'
import type { Medium, NewFile, ReadableMedium } from '../media/medium.ts'
import {
  corrupt,
  decodeHeader,
  decodeOrThrowCorrupt,
  encodeHeader,
  FrameWriter,
  fileName,
  HEADER_BYTES,
  readFrame,
} from './format.ts'
import { type Segment, State } from './state.ts'
import type { StoredEntry, TablePart } from './table.ts'

/** Parts have about this length: a look-up goes through one of them. */
const PART_BYTES = 16_384

/** The frames: parts of the documents of a collection, whose data are entries, … */
type CheckpointFrame =
  | { readonly kind: 'documents'; readonly collection: Collection }
  /** … parts of the logs, … */
  | { readonly kind: 'logs'; readonly due: number | null }
  /** … and the last one. */
  | ({ readonly kind: 'end'; readonly frames: number } & Counters)

interface Counters {
  readonly segments: readonly Segment[]
  readonly nextVersion: number
  readonly nextSegment: number
}

/** Writes a checkpoint, part by part, and keeps the parts for the tables. */
export class CheckpointWriter {
  readonly #file: NewFile
  readonly #writer = new FrameWriter()
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

  /** Writes a table: the documents of a collection, or without one the logs. Resolves to its parts. */
  async writeTable(
    entries: Iterable<StoredEntry> | AsyncIterable<StoredEntry>,
    collection?: Collection,
  ): Promise<readonly TablePart[]> {
    const parts: TablePart[] = []
    let pending: Buffer[] = []
    let bytes = 0
    let due = Number.POSITIVE_INFINITY
    const flush = async () => {
      const part = { entries: Buffer.concat(pending), due }
      parts.push(part)
      pending = []
      bytes = 0
      due = Number.POSITIVE_INFINITY
      const isNever = part.due === Number.POSITIVE_INFINITY
      const frame: CheckpointFrame =
        collection === undefined
          ? { kind: 'logs', due: isNever ? null : part.due }
          : { kind: 'documents', collection }
      await this.#write(frame, part.entries)
    }
    for await (const one of entries) {
      pending.push(one.entry)
      bytes += one.entry.length
      due = Math.min(due, one.due)
      if (bytes >= PART_BYTES) await flush()
    }
    if (bytes > 0) await flush()
    return parts
  }

  /** Gives the file its name. Durable once it resolves. */
  async finish(counters: Counters): Promise<void> {
    await this.#write({ kind: 'end', frames: this.#frames, ...counters })
    await this.#file.finish()
  }

  abandon(): Promise<void> {
    return this.#file.abandon()
  }

  async #write(frame: CheckpointFrame, data?: Buffer): Promise<void> {
    this.#writer.truncate(0)
    this.bytes += this.#writer.add(frame, data && [data])
    this.#frames++
    await this.#file.write(this.#writer.bytes)
  }
}

/** Reads a checkpoint. Rejects with a `corrupt` failure that names the place if it is damaged. */
export async function readCheckpoint(medium: ReadableMedium, number: number, bytes: number): Promise<State> {
  const name = fileName('checkpoint', number)
  // Its parts stay in memory, as views.
  const file = await medium.read(name, 0, bytes)
  decodeHeader(file, name)
  const state = new State()
  const logs: TablePart[] = []
  const documents = new Map<Collection, TablePart[]>()
  let offset = HEADER_BYTES
  for (let frames = 0; ; frames++) {
    if (offset >= bytes) throw corrupt(name, offset, 'the end is missing')
    const { payload, data, end } = decodeOrThrowCorrupt(name, offset, () => readFrame(file, offset))
    const frame = payload as CheckpointFrame
    if (frame.kind === 'logs') {
      logs.push({ entries: data, due: frame.due ?? Number.POSITIVE_INFINITY })
    } else if (frame.kind === 'documents') {
      const parts = documents.get(frame.collection) ?? []
      documents.set(frame.collection, parts)
      parts.push({ entries: data, due: Number.POSITIVE_INFINITY })
    } else {
      if (frame.frames !== frames || end !== bytes) {
        throw corrupt(name, offset, 'the end is misplaced')
      }
      state.segments = new Map(frame.segments.map((segment) => [segment.number, segment]))
      state.nextVersion = frame.nextVersion
      state.nextSegment = frame.nextSegment
      break
    }
    offset = end
  }
  for (const [collection, parts] of documents) state.documents(collection).replaceStored(parts, new Map())
  state.logs.replaceStored(logs, new Map())
  return state
}
