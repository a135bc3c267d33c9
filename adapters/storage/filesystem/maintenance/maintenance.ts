import type { Clock } from '../../../../src/runtime/clock.ts'
import type { SerialQueue } from '../../../../src/runtime/serial-queue.ts'
import { StorageFailure } from '../../../../src/storage/errors.ts'
import { fileFailure, isFullError } from '../files/errors.ts'
import type { FileCache } from '../files/file-cache.ts'
import { fileName } from '../files/file-header.ts'
import type { Files } from '../files/files.ts'
import type { Reserve } from '../files/reserve.ts'
import type { Committer, Housekeeping } from '../journal/committer.ts'
import { type Journals, lostFile } from '../journal/journals.ts'
import type { RunReader } from '../segment/run-reader.ts'
import type { OpenCheckpoint } from '../state/checkpoint-file.ts'
import type { State } from '../state/state.ts'
import {
  type CompactChange,
  compact,
  compactionParts,
  planCompaction,
  planCompactionOnFullDisk,
} from './compaction.ts'
import { RollFailures, type UnresolvedRolls } from './failed-rolls.ts'
import { applyRoll, planRoll, RollGain, removeCovered, roll } from './roll.ts'

/**
 * Journals are rolled at this size, or at that of the last checkpoint, so that checkpoints at most double
 * what is written.
 */
const ROLL_BYTES_MIN = 16 * 1_048_576
/** Limits what an opening reads, and the memory that a roll takes. */
const ROLL_BYTES_MAX = 64 * 1_048_576
/** Limits the number of journals: each opening that writes creates one. */
const JOURNALS_MAX = 16
/**
 * How many changed documents and logs are kept in memory until journals are rolled, or an eighth of the logs
 * in the checkpoint. Also limits what an opening has to look up.
 */
const CHANGED_MAX = 65_536
/** The factor of the journal size up to which appends continue while journals are rolled. */
const BACKPRESSURE_FACTOR = 3
/**
 * How many times the size, or the number of changes, journals may reach while rolls fail. Beyond it, calls
 * that add data are refused: an opening would read them all.
 */
const REFUSAL_FACTOR = 4
/** How long after the last group its end is recorded in the journal, in milliseconds. */
const IDLE_MS = 100

export interface MaintenanceParts {
  /** Undefined in tests that need every run to be the same. */
  readonly clock: Clock | undefined
  readonly files: Files
  readonly handles: FileCache
  readonly state: State
  readonly journals: Journals
  readonly reserve: Reserve
  readonly reader: RunReader
  /** Runs rolls and reclaims, which exclude each other. */
  readonly rollQueue: SerialQueue
  readonly unresolvedRolls: UnresolvedRolls
  /** The checkpoint that the state was read from; undefined without one. */
  readonly checkpoint: OpenCheckpoint | undefined
  /** Overrides the size at which journals are rolled; for tests. */
  readonly rollBytes: number | undefined
  /** Overrides the size from which blocks are not copied; for tests. */
  readonly largeBlockBytes: number | undefined
  /** Overrides how many runs a group of a compaction replaces; for tests. */
  readonly groupRuns: number | undefined
}

/**
 * Background work: rolls journals, compacts segments, removes unused files. Failed work is retried when there
 * is more to do.
 */
export class Maintenance implements Housekeeping {
  readonly #parts: MaintenanceParts
  #committer: Committer | undefined
  #checkpoint: OpenCheckpoint | undefined
  /** Resolves when the checkpoints that were replaced are closed. */
  #closed: Promise<void> | undefined
  #rolling: Promise<void> | undefined
  /** Settles with the current roll. */
  #rolled: Promise<void> | undefined
  #compacting: Promise<void> | undefined
  /** The segment that not all of its groups have put to use. */
  #unfinishedSegment: number | undefined
  #removing: Promise<void> | undefined
  readonly #failedRolls: RollFailures
  readonly #gain = new RollGain()
  #failure: unknown
  #isClosing = false
  #lastGroupAt = 0
  #cancelIdle: (() => void) | undefined

  constructor(parts: MaintenanceParts) {
    this.#parts = parts
    this.#checkpoint = parts.checkpoint
    this.#failedRolls = new RollFailures(parts.clock)
  }

  start(committer: Committer): void {
    this.#committer = committer
    this.groupWritten()
  }

  groupWritten(): void {
    if (this.#isClosing) return
    try {
      this.#awaitIdle()
      this.#startDueWork()
    } catch (error) {
      this.#failure = fileFailure(error, true)
    }
  }

  /**
   * Records the synced end once no groups follow: with each of them, appends would take a third longer. A
   * timer that finds a recent group is set again, which is cheaper than setting it for each group.
   */
  #awaitIdle(): void {
    const { clock, journals } = this.#parts
    if (clock === undefined) return
    this.#lastGroupAt = clock.now()
    if (this.#cancelIdle !== undefined || !journals.isSyncedEndBehind) return
    const wait = (delayMs: number): void => {
      this.#cancelIdle = clock.schedule(delayMs, check, { background: true })
    }
    const check = (): void => {
      const idleMs = clock.now() - this.#lastGroupAt
      if (idleMs >= 0 && idleMs < IDLE_MS) {
        wait(IDLE_MS - idleMs)
        return
      }
      this.#cancelIdle = undefined
      void this.#run(() => this.#committer!.runExclusively(() => journals.recordSyncedEnd()))
    }
    wait(IDLE_MS)
  }

  #startDueWork(): void {
    this.#rolling ??= this.#rollIfDue()
    this.#compacting ??= this.#compactIfDue()
    this.#removing ??= this.#removeIfDue()
  }

  #rollIfDue(): Promise<void> | undefined {
    const { reserve, rollQueue } = this.#parts
    const roll = () => rollQueue.run(async () => this.#removeCovered(await this.#roll()))
    let work: (() => Promise<void>) | undefined
    if (reserve.isFull && this.#isGainDue()) work = () => reserve.use(roll)
    else if (this.#isRollDue()) work = roll
    if (work === undefined) return undefined
    return this.#run(work).finally(async () => {
      this.#rolling = undefined
      this.groupWritten()
      await this.makeRoom()
    })
  }

  /**
   * Whether to roll because the disk is full. Without room for it besides the reserve, it would only use that
   * up.
   */
  #isGainDue(): boolean {
    const { state, journals, reserve } = this.#parts
    const isDue = this.#gain.isDue(state, journals.bytes, this.#checkpointBytes, this.#rollBytes)
    return isDue && this.#gain.neededBytes <= reserve.bytes
  }

  /** Allocates the reserve again once the disk has room, unless work that needs the room is running. */
  async makeRoom(): Promise<void> {
    const { reserve } = this.#parts
    if (reserve.isFull && !this.isBusy && !this.#isClosing) await reserve.allocate()
  }

  /** There may be room now. Without a reserve, that shows when it is allocated. */
  #filesRemoved(): void {
    this.#parts.reserve.markWritable()
  }

  get isBusy(): boolean {
    return (this.#rolling ?? this.#compacting ?? this.#removing) !== undefined
  }

  get backpressure(): Promise<unknown> | undefined {
    return this.#parts.journals.bytes > BACKPRESSURE_FACTOR * this.#rollBytes ? this.#rolled : undefined
  }

  refusal(): StorageFailure | undefined {
    return this.#isOverLimit ? this.#failedRolls.refusal(this.#parts.journals.bytes) : undefined
  }

  get #isOverLimit(): boolean {
    const { state, journals } = this.#parts
    return (
      journals.bytes > REFUSAL_FACTOR * this.#rollBytes ||
      state.changedSize > REFUSAL_FACTOR * this.#changedMax
    )
  }

  /** Returns the last failure since the previous call, which would go unnoticed otherwise. */
  takeFailure(): unknown {
    const failure = this.#failure
    this.#failure = undefined
    return failure
  }

  /** Aborts all work; none of it has to finish. */
  async close(): Promise<void> {
    this.#isClosing = true
    this.#cancelIdle?.()
    await Promise.all([this.#rolling, this.#compacting, this.#removing])
    await this.#removeIfDue()
    await this.#closed
    await this.#checkpoint?.close()
  }

  get #checkpointBytes(): number {
    return this.#checkpoint?.bytes ?? 0
  }

  get #rollBytes(): number {
    const { rollBytes } = this.#parts
    return rollBytes ?? Math.min(Math.max(this.#checkpointBytes, ROLL_BYTES_MIN), ROLL_BYTES_MAX)
  }

  get #changedMax(): number {
    // Numbers of deleted logs are not used again, so the next one says little about how many there are.
    return Math.max(CHANGED_MAX, (this.#checkpoint?.logs ?? 0) / 8)
  }

  #isRollDue(): boolean {
    const { state, journals } = this.#parts
    const { bytes, ended } = journals
    if (!this.#failedRolls.isRetryDue(bytes, this.#isOverLimit)) return false
    if (state.changedSize >= this.#changedMax) return true
    return bytes >= this.#rollBytes || ended.length >= JOURNALS_MAX
  }

  /** Resolves to the number of the new checkpoint. */
  async #roll(): Promise<number> {
    const { files, handles, state, journals, unresolvedRolls, largeBlockBytes } = this.#parts
    const nextSegment = (): number => state.nextSegment++
    // A process that is open for a short time only, as the next one may be, would never end with many
    // journals.
    const isAborted = (): boolean => this.#isClosing && journals.ended.length < JOURNALS_MAX
    let done = (): void => {}
    let isFrozen = false
    let checkpoint: OpenCheckpoint | undefined
    this.#rolled = new Promise((resolve) => {
      done = resolve
    })
    try {
      const plan = await this.#committer!.runExclusively(async () => {
        await this.#assertComplete()
        if (journals.hasGroups) await journals.rotate()
        const plan = planRoll(state, journals.currentNumber, journals.ended)
        isFrozen = true
        return plan
      })
      const rolled = await roll(files, handles, state, plan, unresolvedRolls, {
        nextSegment,
        isAborted,
        largeBlockBytes,
      })
      checkpoint = rolled.checkpoint
      await this.#committer!.runExclusively(() => {
        // Even if it throws, the state reads the checkpoint from here on.
        isFrozen = false
        applyRoll(state, rolled)
      })
      const before = this.#checkpoint
      this.#checkpoint = checkpoint
      // Not awaited: a slow read must not delay appends.
      this.#closed = Promise.all([this.#closed, before?.close().catch(() => {})]).then(() => {})
      this.#failedRolls.clear()
      this.#gain.rolled()
      journals.drop(plan.snapshot.journal)
      await unresolvedRolls.supersede()
      return plan.snapshot.journal
    } catch (error) {
      if (isFrozen) {
        state.thaw()
        await checkpoint?.close().catch(() => {})
      }
      this.#failedRolls.add(error, journals.bytes + this.#rollBytes)
      throw error
    } finally {
      this.#rolled = undefined
      done()
    }
  }

  /** Throws if a file is missing without which the directory would not open after the roll. */
  async #assertComplete(): Promise<void> {
    const { files, state, journals } = this.#parts
    const names = new Set(await files.list())
    const needed = [
      ...journals.ended.map(({ number }) => fileName('journal', number)),
      ...[...state.segments.values()].flatMap(({ number, runs }) =>
        runs > 0 ? fileName('segment', number) : [],
      ),
    ]
    const lost = needed.find((name) => !names.has(name))
    if (lost !== undefined) throw journals.fail(lostFile(lost))
  }

  async #removeCovered(checkpoint: number): Promise<void> {
    const { files, handles } = this.#parts
    await removeCovered(files, handles, checkpoint)
    this.#filesRemoved()
  }

  #compactIfDue(): Promise<void> | undefined {
    const { files, handles, state, reader, reserve } = this.#parts
    if (!state.hasChangedSegments) return undefined
    state.hasChangedSegments = false
    const { isFull } = reserve
    const plan = isFull ? planCompactionOnFullDisk(state, reserve.bytes) : planCompaction(state)
    if (plan === undefined) return undefined
    const isAborted = (): boolean => this.#isClosing
    const write = () => compact(files, handles, reader, plan, state.nextSegment++, isAborted)
    return this.#run(async () => {
      try {
        const change = await (plan.mayUseReserve ? reserve.use(write) : write())
        if (change !== undefined) await this.#applyCompaction(change)
        // There may be more segments to look at.
        else state.hasChangedSegments = true
      } catch (error) {
        // Other segments may be compacted without the damaged one, and fewer if the disk is full.
        state.hasChangedSegments ||=
          (isFullError(error) && !isFull) ||
          [...plan.replaced].some((one) => state.segments.get(one)?.isUnreadable)
        throw error
      }
    }).finally(() => {
      this.#compacting = undefined
      // There may be more to do, and no further group might come.
      this.groupWritten()
      return this.makeRoom()
    })
  }

  async #applyCompaction(change: CompactChange): Promise<void> {
    const { handles, state, groupRuns } = this.#parts
    let isUsed = false
    this.#unfinishedSegment = change.segment.number
    try {
      for (const part of compactionParts(change, groupRuns)) {
        if (isUsed && this.#isClosing) return
        const prepare = () => state.prepare(part)
        await this.#committer!.commit(part.runs.length * 64, () => [part], true, prepare)
        isUsed = true
      }
    } catch (error) {
      // Otherwise the next opening may find the change and need the segment.
      const isSurelyUnused = !isUsed && StorageFailure.is(error) && error.nothingWritten
      if (isSurelyUnused) await handles.remove(fileName('segment', change.segment.number)).catch(() => {})
      throw error
    } finally {
      this.#unfinishedSegment = undefined
    }
  }

  #removeIfDue(): Promise<void> | undefined {
    const { handles, state, journals } = this.#parts
    const unused = new Set(state.takeUnusedSegments(this.#unfinishedSegment))
    if (unused.size === 0) return undefined
    return this.#run(async () => {
      await this.#committer!.runExclusively(() => journals.syncUnsynced())
      for (const segment of unused) {
        await handles.remove(fileName('segment', segment.number))
        unused.delete(segment)
      }
      this.#filesRemoved()
    }).finally(() => {
      // Retried after the next group.
      state.returnUnusedSegments(unused)
      this.#removing = undefined
      if (unused.size === 0) this.groupWritten()
      return this.makeRoom()
    })
  }

  async #run(work: () => Promise<void>): Promise<void> {
    try {
      await work()
    } catch (error) {
      const { reserve } = this.#parts
      // Reported once for as long as the disk is full.
      const isKnown = isFullError(error) && reserve.isFull
      if (isFullError(error)) reserve.markFull()
      if (!this.#isClosing && !isKnown) this.#failure = fileFailure(error, true)
    }
  }
}
