import { StorageFailure } from '../../../src/storage/errors.ts'
import type { Change } from './changes.ts'
import type { Committer, Housekeeping } from './committer.ts'
import { failureOf } from './failures.ts'
import { fileName, parseFileName } from './file-header.ts'
import type { Files } from './files.ts'
import type { Handles } from './handles.ts'
import type { Journals } from './journals.ts'
import { merge, planMerge } from './merge.ts'
import { planRoll, roll, useRolled } from './roll.ts'
import type { RunReader } from './run-reader.ts'
import type { State } from './state.ts'
import type { Turns } from './turns.ts'
import type { UndecidedRolls } from './undecided-rolls.ts'

/** Journals are rolled when they have so much, or as much as the last checkpoint: then making checkpoints at most doubles what is written. */
const ROLL_BYTES_MIN = 16 * 1_048_576
/** A bound for what an opening reads, and for what rolling takes in memory. */
const ROLL_BYTES_MAX = 64 * 1_048_576
/** Each opening that writes makes a journal. */
const JOURNALS_MAX = 16
/** While journals are rolled, appends go on until there is so much more. */
const BEHIND_FACTOR = 3

export interface MaintenanceParts {
  readonly files: Files
  readonly handles: Handles
  readonly state: State
  readonly journals: Journals
  readonly reader: RunReader
  /** Rolling and freeing take turns. */
  readonly turns: Turns
  readonly undecided: UndecidedRolls
  readonly checkpointBytes: number
  /** Overrides when journals are rolled; for tests. */
  readonly rollBytes: number | undefined
  /** Overrides from what length on blocks are not copied; for tests. */
  readonly largeBlockBytes: number | undefined
}

/** What runs beside the calls: rolling journals, merging segments, removing files that are not wanted. What fails is tried again when there is more to do. */
export class Maintenance implements Housekeeping {
  readonly #parts: MaintenanceParts
  #committer: Committer | undefined
  #checkpointBytes: number
  #rolling: Promise<void> | undefined
  /** Resolves when the roll that is under way has come to its end. */
  #rolled: Promise<void> | undefined
  #merging: Promise<void> | undefined
  #removing: Promise<void> | undefined
  /** After a roll failed: not again before the journals have so much. */
  #notBefore = 0
  #failure: unknown
  #isClosing = false

  constructor(parts: MaintenanceParts) {
    this.#parts = parts
    this.#checkpointBytes = parts.checkpointBytes
  }

  start(committer: Committer): void {
    this.#committer = committer
    this.groupWritten()
  }

  groupWritten(): void {
    if (this.#isClosing) return
    try {
      this.#beginWhatIsDue()
    } catch (error) {
      this.#failure = failureOf(error, true)
    }
  }

  #beginWhatIsDue(): void {
    this.#rolling ??= this.#isRollDue()
      ? this.#run(() => this.#parts.turns.take(() => this.#roll())).finally(() => {
          this.#rolling = undefined
          this.groupWritten()
        })
      : undefined
    this.#merging ??= this.#mergeIfDue()
    this.#removing ??= this.#removeIfDue()
  }

  get behind(): Promise<unknown> | undefined {
    return this.#parts.journals.bytes > BEHIND_FACTOR * this.#rollBytes ? this.#rolled : undefined
  }

  /** What failed since it was last asked, for nobody else hears of it. */
  takeFailure(): unknown {
    const failure = this.#failure
    this.#failure = undefined
    return failure
  }

  /** Gives up what is under way; all of it can be. */
  async close(): Promise<void> {
    this.#isClosing = true
    await Promise.all([this.#rolling, this.#merging, this.#removing])
    await this.#removeIfDue()
  }

  get #rollBytes(): number {
    const { rollBytes } = this.#parts
    return rollBytes ?? Math.min(Math.max(this.#checkpointBytes, ROLL_BYTES_MIN), ROLL_BYTES_MAX)
  }

  #isRollDue(): boolean {
    const { bytes, ended } = this.#parts.journals
    if (bytes < this.#notBefore) return false
    return bytes >= this.#rollBytes || ended.length >= JOURNALS_MAX
  }

  async #roll(): Promise<void> {
    const { files, handles, state, journals, undecided, largeBlockBytes } = this.#parts
    const nextSegment = (): number => state.nextSegment++
    const isAborted = (): boolean => this.#isClosing
    let done = (): void => {}
    this.#rolled = new Promise((resolve) => {
      done = resolve
    })
    try {
      const plan = await this.#committer!.exclusively(async () => {
        await journals.begin()
        return planRoll(state, journals.currentNumber, journals.ended)
      })
      const rolled = await roll(files, handles, plan, undecided, { nextSegment, isAborted, largeBlockBytes })
      await this.#committer!.exclusively(() => useRolled(state, rolled))
      this.#checkpointBytes = rolled.checkpointBytes
      this.#notBefore = 0
      await undecided.supersede()
      for (const number of journals.forget(plan.snapshot.journal)) {
        await handles.remove(fileName('journal', number))
      }
      await this.#removeCheckpoints(plan.snapshot.journal)
    } catch (error) {
      this.#notBefore = journals.bytes + this.#rollBytes
      throw error
    } finally {
      this.#rolled = undefined
      done()
    }
  }

  async #removeCheckpoints(before: number): Promise<void> {
    const { files } = this.#parts
    for (const name of await files.list()) {
      const file = parseFileName(name)
      if (file?.kind === 'checkpoint' && file.number < before) await files.unlink(name)
    }
  }

  #mergeIfDue(): Promise<void> | undefined {
    const { files, handles, state, reader } = this.#parts
    if (!state.hasChangedSegments) return undefined
    state.hasChangedSegments = false
    const plan = planMerge(state)
    if (plan === undefined) return undefined
    return this.#run(async () => {
      const number = state.nextSegment++
      const isAborted = (): boolean => this.#isClosing
      try {
        const change = await merge(files, handles, reader, plan, number, isAborted)
        await this.#useMerged(change)
      } catch (error) {
        // Others may be merged without it.
        state.hasChangedSegments ||= [...plan.replaced].some((one) => state.segments.get(one)?.isUnreadable)
        throw error
      }
    }).finally(() => {
      this.#merging = undefined
      // There may be more to do, and perhaps no further group comes.
      this.groupWritten()
    })
  }

  async #useMerged(change: Extract<Change, { kind: 'merge' }>): Promise<void> {
    try {
      await this.#committer!.commit(change.runs.length * 64, () => [change])
    } catch (error) {
      // If not, the next opening may find the change, and then needs the segment.
      const isSurelyUnused = StorageFailure.is(error) && error.nothingWritten
      if (isSurelyUnused) await this.#removeSegment(change.segment.number).catch(() => {})
      throw error
    }
  }

  #removeIfDue(): Promise<void> | undefined {
    const { state, journals } = this.#parts
    const unused = new Set(state.takeUnused())
    if (unused.size === 0) return undefined
    return this.#run(async () => {
      await this.#committer!.exclusively(() => journals.settle())
      for (const segment of unused) {
        await this.#removeSegment(segment.number)
        unused.delete(segment)
      }
    }).finally(() => {
      // What could not be removed is tried again after a further group.
      state.putBackUnused(unused)
      this.#removing = undefined
      if (unused.size === 0) this.groupWritten()
    })
  }

  async #removeSegment(number: number): Promise<void> {
    try {
      await this.#parts.handles.remove(fileName('segment', number))
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    }
  }

  async #run(work: () => Promise<void>): Promise<void> {
    try {
      await work()
    } catch (error) {
      if (!this.#isClosing) this.#failure = failureOf(error, true)
    }
  }
}
