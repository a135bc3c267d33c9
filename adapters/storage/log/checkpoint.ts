import type { Collection } from '../../../src/storage/contract.ts'
import { Damage, type ReadableMedium } from '../media/medium.ts'
import {
  decodeHeader,
  decodeOrThrowCorrupt,
  type FrameFile,
  fileName,
  HEADER_BYTES,
  readFrame,
} from './format.ts'
import { type Segment, State } from './state.ts'
import type { StoredEntry, TablePart } from './table.ts'

/** Parts have about this length: a look-up goes through one of them. */
const PART_BYTES = 16_384

/** The frames: parts of tables, whose data are entries, and the last one. */
type CheckpointFrame =
  | { readonly kind: 'part'; readonly table: TableName }
  | ({ readonly kind: 'end'; readonly parts: number } & Counters)

/** The documents of a collection, or the logs. */
type TableName = Collection | 'logs'

interface Counters {
  readonly segments: readonly Segment[]
  readonly nextVersion: number
  readonly nextSegment: number
}

/** Writes a table to a checkpoint. Resolves to its parts. */
export async function writeTable(
  file: FrameFile,
  table: TableName,
  entries: Iterable<StoredEntry> | AsyncIterable<StoredEntry>,
): Promise<readonly TablePart[]> {
  const parts: TablePart[] = []
  let pending: Buffer[] = []
  let bytes = 0
  const flush = async () => {
    const part = { entries: Buffer.concat(pending), due: Number.NEGATIVE_INFINITY }
    parts.push(part)
    pending = []
    bytes = 0
    const frame: CheckpointFrame = { kind: 'part', table }
    await file.add(frame, [part.entries])
  }
  for await (const { entry } of entries) {
    pending.push(entry)
    bytes += entry.length
    if (bytes >= PART_BYTES) await flush()
  }
  if (bytes > 0) await flush()
  return parts
}

/** Writes the end of a checkpoint with so many parts, and gives it its name. */
export async function finishCheckpoint(file: FrameFile, parts: number, counters: Counters): Promise<void> {
  const frame: CheckpointFrame = { kind: 'end', parts, ...counters }
  await file.add(frame)
  await file.finish()
}

/** Reads a checkpoint. Rejects with a `corrupt` failure that names the place if it is damaged. */
export async function readCheckpoint(medium: ReadableMedium, number: number, bytes: number): Promise<State> {
  const name = fileName('checkpoint', number)
  // Its parts stay in memory, as views.
  const file = await medium.read(name, 0, bytes)
  decodeHeader(file, name)
  const tables = new Map<TableName, TablePart[]>()
  let offset = HEADER_BYTES
  for (let count = 0; offset < bytes; count++) {
    const { payload, data, end } = decodeOrThrowCorrupt(name, offset, () => readFrame(file, offset))
    const frame = payload as CheckpointFrame
    if (frame.kind === 'end') {
      if (frame.parts !== count || end !== bytes) throw new Damage(name, offset, 'the end is misplaced')
      return stateOf(tables, frame)
    }
    const parts = tables.get(frame.table) ?? []
    tables.set(frame.table, parts)
    parts.push({ entries: data, due: Number.NEGATIVE_INFINITY })
    offset = end
  }
  throw new Damage(name, offset, 'the end is missing')
}

function stateOf(tables: ReadonlyMap<TableName, TablePart[]>, counters: Counters): State {
  const state = new State()
  for (const [name, parts] of tables) {
    const table = name === 'logs' ? state.logs : state.documents(name)
    table.replaceStored(parts, new Map())
  }
  for (const segment of counters.segments) state.segments.set(segment.number, segment)
  state.nextVersion = counters.nextVersion
  state.nextSegment = counters.nextSegment
  return state
}
