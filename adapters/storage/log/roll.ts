import type { Collection } from '../../../src/storage/contract.ts'
import { lowerBound } from '../../../src/storage/ordered-list.ts'
import type { Medium } from '../media/medium.ts'
import { CheckpointWriter, PART_BYTES_MIN } from './checkpoint.ts'
import { decodeOrThrowCorrupt, fileName } from './format.ts'
import type { JournalFile } from './journal.ts'
import { RunMerger, segmentsToMerge } from './merge.ts'
import { decodeJournalBlock } from './reader.ts'
import { SegmentWriter } from './segment.ts'
import type { JournalBlock, Log, Run, Segment, State, StoredDocument } from './state.ts'
import type { SnapshotItem, Table, TablePart } from './table.ts'

/** Thrown to give up a roll because the storage is closed. */
export class RollAborted extends Error {}

interface Rolled {
  readonly logs: readonly TablePart[]
  readonly documents: ReadonlyMap<Collection, readonly TablePart[]>
  readonly segments: ReadonlyMap<number, Segment>
  readonly checkpointBytes: number
}

/**
 * Writes what is live in ended journals as a segment, and a checkpoint of the state at the moment when the
 * next journal began, in a single pass over the logs. If enough segments are similar, they are merged in the
 * same pass. Until the checkpoint has its name, nothing has changed; then it replaces the journals.
 *
 * @param ended The journals that no longer change.
 * @param next The number of the journal that the checkpoint precedes. The state is frozen.
 */
export class Roll {
  readonly #medium: Medium
  readonly #state: State
  readonly #ended: ReadonlyMap<number, JournalFile>
  readonly #next: number
  readonly #isAborted: () => boolean
  readonly #contents = new Map<number, Buffer>()
  /** Those of the moment at which the state was frozen. */
  readonly #segments: Map<number, Segment>
  readonly #collections: readonly (readonly [Collection, Table<StoredDocument>])[]
  readonly #writers: SegmentWriter[] = []

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
    this.#collections = [...state.collections]
    this.#segments = new Map([...state.segments].map(([number, segment]) => [number, { ...segment }]))
  }

  /** Resolves once the checkpoint is durable. */
  async write(): Promise<Rolled> {
    const { nextVersion } = this.#state
    const checkpoint = await CheckpointWriter.create(this.#medium, this.#next)
    let isFinishing = false
    try {
      for (const [number, { end }] of this.#ended) {
        this.#contents.set(number, await this.#medium.read(fileName('journal', number), 0, end))
      }
      const documents = new Map<Collection, readonly TablePart[]>()
      for (const [collection, table] of this.#collections) {
        checkpoint.begin(collection)
        for (const item of table.snapshot(() => checkpoint.takesParts, PART_BYTES_MIN)) {
          await checkpoint.add(table, item)
          this.#assertWanted()
        }
        documents.set(collection, await checkpoint.end())
      }
      const logs = await this.#writeLogs(checkpoint)
      for (const writer of this.#writers) await this.#finish(writer)
      for (const [number, { runs }] of this.#segments) if (runs === 0) this.#segments.delete(number)
      isFinishing = true
      await checkpoint.finish(this.#segments.values(), nextVersion, this.#state.nextSegment)
      return { logs, documents, segments: this.#segments, checkpointBytes: checkpoint.bytes }
    } catch (error) {
      await checkpoint.abandon()
      for (const writer of this.#writers) await this.#undo(writer, isFinishing)
      throw error
    }
  }

  /** Uses the checkpoint instead of the previous one. The state must not change meanwhile. */
  apply({ logs, documents, segments }: Rolled): void {
    const state = this.#state
    for (const [collection, table] of state.collections) table.replaceStored(documents.get(collection) ?? [])
    state.logs.replaceStored(logs)
    state.segments = new Map(segments)
    state.due.replaceParts(logs, (id) => state.logs.changed.has(id))
    for (const [id, log] of state.logs.changed) {
      const stored = state.logs.stored(id)
      if (log === null) {
        for (const run of stored?.runs ?? []) state.release(run)
        continue
      }
      // Nothing is freed during a roll, so the runs are those of the checkpoint.
      log.runs = stored?.runs ?? []
      log.blocks.splice(
        0,
        lowerBound(log.blocks, ({ journal }) => journal >= this.#next),
      )
    }
  }

  async #writeLogs(checkpoint: CheckpointWriter): Promise<readonly TablePart[]> {
    const { logs } = this.#state
    const replaced = segmentsToMerge(this.#segments.values())
    const merger =
      replaced.length > 0 ? new RunMerger(this.#medium, await this.#begin(), replaced) : undefined
    for (const { number } of replaced) this.#segments.delete(number)
    let segment: SegmentWriter | undefined
    checkpoint.begin()
    for (const item of logs.snapshot(() => merger === undefined && checkpoint.takesParts, PART_BYTES_MIN)) {
      this.#assertWanted()
      const log = 'part' in item ? undefined : 'value' in item || merger ? logs.valueOf(item) : undefined
      if (log === undefined) {
        await checkpoint.add(logs, item)
        continue
      }
      const { key: id } = item as Exclude<SnapshotItem<Log>, { part: TablePart }>
      const runs = [...((await merger?.merge(id, log)) ?? log.runs)]
      if (log.blocks.length > 0) {
        segment ??= await this.#begin()
        runs.push((await this.#writeRun(segment, id, log.blocks))!)
      }
      await checkpoint.add(logs, { key: id, value: { ...log, runs, blocks: [] } })
    }
    return checkpoint.end()
  }

  async #writeRun(
    segment: SegmentWriter,
    id: string,
    blocks: readonly JournalBlock[],
  ): Promise<Run | undefined> {
    segment.begin(id)
    for (const block of blocks) {
      const { journal, offset } = block
      const { salt } = this.#ended.get(journal)!
      const bytes = this.#contents.get(journal)!
      const decode = () => decodeJournalBlock(bytes, offset, salt, id, block, true)
      await segment.add(decodeOrThrowCorrupt(fileName('journal', journal), offset, decode))
    }
    return segment.end()
  }

  async #begin(): Promise<SegmentWriter> {
    const writer = await SegmentWriter.create(this.#medium, this.#state.nextSegment++)
    this.#writers.push(writer)
    return writer
  }

  async #finish({ number, bytes, runs, runBytes }: SegmentWriter): Promise<void> {
    await this.#writers.find((writer) => writer.number === number)!.finish()
    this.#segments.set(number, { number, bytes, runs, runBytes })
  }

  /** The checkpoint may have its name if finishing it failed: then its segments stay. */
  async #undo(writer: SegmentWriter, mayBeUsed: boolean): Promise<void> {
    await writer.abandon()
    if (!mayBeUsed) await this.#medium.remove(fileName('segment', writer.number)).catch(() => {})
  }

  #assertWanted(): void {
    if (this.#isAborted()) throw new RollAborted('the storage is closed')
  }
}
