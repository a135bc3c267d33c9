import type { Collection, StoredBlock } from '../../../src/storage/contract.ts'
import type { Medium } from '../media/medium.ts'
import { finishCheckpoint, writeTable } from './checkpoint.ts'
import { FrameFile, fileName } from './format.ts'
import type { JournalFile } from './journal.ts'
import { blocksAt, blocksOf, writeRun } from './segment.ts'
import type { JournalBlock, Log, Run, Segment, State } from './state.ts'
import { encodeEntry, type Snapshot, type StoredEntry, type Table, type TablePart } from './table.ts'

/** So many segments of a similar size become one. */
const MERGED_SEGMENTS = 8
/** Larger ones are merged only if less than half of them is in use, so that a roll does not copy too much. */
const SMALL_BYTES_MAX = 128 * 1_048_576
const MERGED_BYTES_MAX = 512 * 1_048_576

/** Thrown to give up a roll because the storage is closed. */
export class RollAborted extends Error {}

interface RolledTable<Value extends object> {
  readonly table: Table<Value>
  readonly snapshot: Snapshot<Value>
  parts: readonly TablePart[]
}

/**
 * Writes what is live in ended journals to a segment, and a checkpoint of the state at the moment when the
 * next journal began, in a single pass over the logs. If enough segments are similar, they are merged into
 * the new one in the same pass. Until the checkpoint has its name, nothing has changed; then it replaces the
 * journals.
 */
export class Roll {
  readonly #medium: Medium
  readonly #state: State
  readonly #ended: ReadonlyMap<number, JournalFile>
  readonly #next: number
  readonly #isAborted: () => boolean
  readonly #contents = new Map<number, Buffer>()
  readonly #documents: readonly (RolledTable<object> & { readonly collection: Collection })[]
  readonly #logs: RolledTable<Log>
  readonly #nextVersion: number
  readonly #kept: readonly Segment[]
  /** The numbers of the segments that are merged. */
  readonly #merged: ReadonlySet<number>
  #segment: FrameFile | undefined
  /** What is written of the new segment. */
  #written = { runs: 0, runBytes: 0 }
  checkpointBytes = 0

  /**
   * Begins with the state as it is.
   *
   * @param ended The journals that no longer change.
   * @param next The number of the journal that the checkpoint precedes.
   */
  constructor(
    medium: Medium,
    state: State,
    ended: readonly JournalFile[],
    next: number,
    isAborted: () => boolean,
  ) {
    this.#medium = medium
    this.#state = state
    this.#ended = new Map(ended.map((file) => [file.number, file]))
    this.#next = next
    this.#isAborted = isAborted
    this.#documents = [...state.collections].map(([collection, table]) => ({
      collection,
      ...begun<object>(table),
    }))
    this.#logs = begun(state.logs)
    this.#nextVersion = state.nextVersion
    const used = [...state.segments.values()].filter(({ runs }) => runs > 0)
    this.#merged = new Set(segmentsToMerge(used))
    this.#kept = used.filter(({ number }) => !this.#merged.has(number))
  }

  /** Resolves once the checkpoint is durable. Can be called again if it rejects. */
  async write(): Promise<void> {
    this.#segment = undefined
    this.#written = { runs: 0, runBytes: 0 }
    const checkpoint = await FrameFile.create(this.#medium, 'checkpoint', this.#next)
    let parts = 0
    let isFinishing = false
    try {
      for (const [number, { end }] of this.#ended) {
        this.#contents.set(number, await this.#medium.read(fileName('journal', number), 0, end))
      }
      for (const documents of this.#documents) {
        documents.parts = await writeTable(checkpoint, documents.collection, this.#entries(documents))
        parts += documents.parts.length
      }
      this.#logs.parts = await writeTable(checkpoint, 'logs', this.#logEntries())
      parts += this.#logs.parts.length
      await this.#finishSegment()
      isFinishing = true
      const { nextSegment } = this.#state
      const counters = { segments: this.#segments(), nextVersion: this.#nextVersion, nextSegment }
      await finishCheckpoint(checkpoint, parts, counters)
      this.checkpointBytes = checkpoint.bytes
    } catch (error) {
      await checkpoint.abandon()
      // The checkpoint may have its name if finishing it failed: then its segment stays.
      if (!isFinishing) await this.#removeSegment()
      throw error
    }
  }

  /** Uses the checkpoint instead of the previous one. The state must not change meanwhile. */
  apply(): void {
    const { logs, segments } = this.#state
    for (const { table, snapshot, parts } of this.#documents) table.replaceStored(parts, snapshot.changes)
    logs.replaceStored(this.#logs.parts, this.#logs.snapshot.changes)
    segments.clear()
    for (const segment of this.#segments()) segments.set(segment.number, segment)
    for (const [id, log] of logs.changed) {
      // Nothing is freed during a roll, so the runs are those of the checkpoint.
      const runs = logs.stored(id)?.runs ?? []
      if (log === null) for (const run of runs) this.#state.release(run)
      else logs.set(id, { ...log, runs, blocks: log.blocks.filter(({ journal }) => journal >= this.#next) })
    }
  }

  async #finishSegment(): Promise<void> {
    await this.#segment?.finish()
  }

  async #removeSegment(): Promise<void> {
    const segment = this.#segment
    if (segment === undefined) return
    await segment.abandon()
    await this.#medium.remove(fileName('segment', segment.number)).catch(() => {})
  }

  /** The segments that the checkpoint tells. */
  #segments(): readonly Segment[] {
    if (this.#segment === undefined) return this.#kept
    const { number, bytes } = this.#segment
    return [...this.#kept, { number, bytes, ...this.#written }]
  }

  *#entries<Value extends object>({ table, snapshot }: RolledTable<Value>): Generator<StoredEntry> {
    for (const item of snapshot.items()) {
      if (this.#isAborted()) throw new RollAborted('the storage is closed')
      yield 'entry' in item ? item : encodeEntry(table.codec, item.key, item.value)
    }
  }

  async *#logEntries(): AsyncGenerator<StoredEntry> {
    const { table, snapshot } = this.#logs
    for (const item of snapshot.items()) {
      if (this.#isAborted()) throw new RollAborted('the storage is closed')
      if ('entry' in item && this.#merged.size === 0) yield item
      else yield encodeEntry(table.codec, item.key, await this.#rolled(item.key, table.valueOf(item)))
    }
  }

  /** Resolves to the log without blocks in journals and runs in merged segments, which are written. */
  async #rolled(id: string, log: Log): Promise<Log> {
    const blocks = log.blocks.filter(({ journal }) => journal < this.#next)
    const runs: Run[] = []
    let copied: Run[] = []
    const write = async (last: readonly JournalBlock[]) => {
      if (copied.length + last.length > 0) runs.push(await this.#writeRun(id, log, copied, last))
      copied = []
    }
    for (const run of log.runs) {
      if (this.#merged.has(run.segment)) copied.push(run)
      else {
        await write([])
        runs.push(run)
      }
    }
    await write(blocks)
    return { ...log, runs, blocks: [] }
  }

  async #writeRun(
    id: string,
    log: Log,
    copied: readonly Run[],
    blocks: readonly JournalBlock[],
  ): Promise<Run> {
    this.#segment ??= await FrameFile.create(this.#medium, 'segment', this.#state.nextSegment++)
    const run = await writeRun(this.#segment, id, this.#read(id, log, copied, blocks))
    this.#written = { runs: this.#written.runs + 1, runBytes: this.#written.runBytes + run.bytes }
    return run
  }

  async *#read(
    id: string,
    { freedBelow }: Log,
    runs: readonly Run[],
    blocks: readonly JournalBlock[],
  ): AsyncGenerator<StoredBlock> {
    for (const run of runs) {
      yield* blocksOf(this.#medium, id, run, freedBelow)
    }
    for (const block of blocks) {
      const { number, salt } = this.#ended.get(block.journal)!
      yield* blocksAt(fileName('journal', number), block, this.#contents.get(number)!, 0, id, salt)
    }
  }
}

function begun<Value extends object>(table: Table<Value>): RolledTable<Value> {
  return { table, snapshot: table.snapshot(), parts: [] }
}

/**
 * Returns the numbers of segments that are worth merging: eight in which about as much is in use. So a block
 * is copied about once for every factor of eight by which the data grows, and of the segments that are mostly
 * freed, a bounded number stays.
 */
function segmentsToMerge(segments: readonly Segment[]): readonly number[] {
  const tiers = new Map<number, Segment[]>()
  for (const segment of segments) {
    const { bytes, runBytes } = segment
    if (runBytes > SMALL_BYTES_MAX && runBytes > bytes / 2) continue
    const tier = Math.floor(Math.log(runBytes) / Math.log(MERGED_SEGMENTS))
    const similar = tiers.get(tier) ?? []
    tiers.set(tier, similar)
    similar.push(segment)
    if (similar.length === MERGED_SEGMENTS) return smallestOf(similar)
  }
  return []
}

/** Those that are copied at once, at least two. */
function smallestOf(segments: readonly Segment[]): readonly number[] {
  let bytes = 0
  return segments
    .toSorted((a, b) => a.runBytes - b.runBytes)
    .filter(({ runBytes }, index) => {
      bytes += runBytes
      return index < 2 || bytes <= MERGED_BYTES_MAX
    })
    .map(({ number }) => number)
}
