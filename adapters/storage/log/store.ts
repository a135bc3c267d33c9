import type { Clock } from '../../../src/runtime/clock.ts'
import { SerialQueue } from '../../../src/runtime/queues.ts'
import type { Durability, Reclaimed, ReclaimLimits } from '../../../src/storage/contract.ts'
import { StorageFailure } from '../../../src/storage/errors.ts'
import { isFullError, type Medium, mediumFailure } from '../media/medium.ts'
import { Committer, type Housekeeping } from './committer.ts'
import type { Journal } from './journal.ts'
import { LogReader } from './reader.ts'
import { reclaim } from './reclaim.ts'
import { type Recovered, recover, removeUnused } from './recovery.ts'
import { Roll, RollAborted } from './roll.ts'
import { RESERVE_NAME, Space } from './space.ts'
import type { State } from './state.ts'

/** Journals are rolled when they have so many bytes. */
const ROLL_BYTES = 64 * 1_048_576
/** With a large state they are rolled later, so that checkpoints do not multiply what is written. */
const CHECKPOINT_SHARE = 4
/** What a changed document or log counts for: an opening reads so much of a checkpoint in the same time. */
const CHANGE_LOAD_BYTES = 1024
/** What it takes in a checkpoint, roughly. */
const CHANGE_BYTES = 400
/** The factor of the roll size up to which appends continue while journals are rolled, or cannot be. */
const BACKPRESSURE_FACTOR = 3

export interface LogStorageOptions {
  readonly durability: Durability
  /** The size at which journals are rolled, in bytes. 64 MiB or a quarter of the state by default. */
  readonly rollBytes?: number | undefined
  /** What a group counts for in addition, where an opening reads each by a request. 0 by default. */
  readonly groupBytes?: number | undefined
  /** The shortest time from one group to the next, in milliseconds. 0 by default. */
  readonly flushMs?: number | undefined
  /** The space that is reserved for a full disk, in bytes. 0 by default: the medium is never full. */
  readonly reserveBytes?: number | undefined
  readonly clock?: Clock | undefined
}

/** An open storage, and its work in the background. The sessions of engines stand on it. */
export class LogStore implements Housekeeping {
  readonly state: State
  readonly committer: Committer
  readonly reader: LogReader
  readonly space: Space
  readonly journal: Journal
  readonly #medium: Medium
  readonly #options: LogStorageOptions
  readonly #onError: (error: unknown) => void
  readonly #reclaims = new SerialQueue()
  #checkpointBytes: number
  /** Settles with the roll that is running. Never rejects. */
  #rolling: Promise<void> | undefined
  /** Rolls and reclaims exclude each other. */
  #isReclaiming = false
  /** The load at which the next roll is due. A roll that failed is repeated when there is as much again. */
  #rollAt = 1
  /** Why the last roll failed. */
  #rollFailure: StorageFailure | undefined
  /** When the last group was begun. */
  #groupAt = Number.NEGATIVE_INFINITY
  #isClosed = false

  private constructor(
    medium: Medium,
    space: Space,
    { state, journal, checkpointBytes }: Recovered,
    options: LogStorageOptions,
    onError: (error: unknown) => void,
  ) {
    this.state = state
    this.space = space
    this.journal = journal
    this.#medium = medium
    this.#options = options
    this.#onError = onError
    this.#checkpointBytes = checkpointBytes
    this.committer = new Committer(state, journal, space, this)
    this.reader = new LogReader(medium, state, journal)
  }

  /** @param onError Receives errors that belong to no call. */
  static async open(
    medium: Medium,
    options: LogStorageOptions,
    onError: (error: unknown) => void,
  ): Promise<LogStore> {
    const { durability, reserveBytes = 0 } = options
    try {
      const files = await medium.list()
      const isReserved = files.some(({ name, bytes }) => name === RESERVE_NAME && bytes >= reserveBytes)
      const space = new Space(medium, reserveBytes, isReserved)
      const recovered = await recover(medium, files, space, durability)
      const store = new LogStore(medium, space, recovered, options, onError)
      // A roll that a crash or a close has cut off would delay each opening until something is written.
      await store.afterGroup()
      store.journal.assertWritable()
      return store
    } catch (error) {
      await medium.close().catch(() => {})
      throw mediumFailure(error, true)
    }
  }

  /** Whether it can still be written, and nothing else removed or moved what it writes to. */
  get isUsable(): boolean {
    try {
      this.#medium.assertInPlace()
      return !this.#isClosed && this.journal.failure === undefined
    } catch {
      return false
    }
  }

  assertWritable(): void {
    this.journal.assertWritable()
    if (this.#rollFailure !== undefined && this.#isOverLimit) throw this.#rollFailure
  }

  reclaim(limits: ReclaimLimits): Promise<Reclaimed> {
    return this.#reclaims.run(async () => {
      while (this.#rolling !== undefined) await this.#rolling
      this.#isReclaiming = true
      try {
        const reclaimed = await reclaim(this.#medium, this.state, this.committer, limits)
        await this.space.makeRoom(await this.#removeUnusedSegments())
        return reclaimed
      } finally {
        this.#isReclaiming = false
        // After a group, a roll may give back what was freed in journals.
        if (this.space.isFull) await this.committer.commit('frees', 0, () => [])
      }
    })
  }

  /** Waits until the next group may be formed. */
  async pause(): Promise<void> {
    const { flushMs = 0, clock } = this.#options
    if (flushMs === 0 || clock === undefined) return
    const left = this.#groupAt + flushMs - clock.now()
    // A clock that went back delays no group for longer.
    if (left > 0) await new Promise<void>((resolve) => clock.schedule(Math.min(left, flushMs), resolve))
    this.#groupAt = clock.now()
  }

  /** If the journals are too long, nothing is added before they are rolled. */
  async beforeGroup(): Promise<StorageFailure | undefined> {
    if (!this.#isOverLimit) return undefined
    if (this.#rolling === undefined && !this.#isReclaiming && !this.space.isFull) await this.#beginRoll()
    await this.#rolling
    return this.#isOverLimit ? this.#rollFailure : undefined
  }

  async afterGroup(): Promise<void> {
    const mayRoll = this.#rolling === undefined && !this.#isReclaiming && !this.#isClosed
    if (mayRoll && (this.space.isFull ? this.#freesSpace() : this.#load >= this.#rollAt)) {
      await this.#beginRoll()
    }
  }

  /** Calls must have settled. */
  async close(): Promise<void> {
    this.#isClosed = true
    await this.#rolling
    // Without the closing group, the next opening must assume that the last group is not durable.
    await this.journal.close().catch(() => {})
    await this.#medium.close()
  }

  get #rollBytes(): number {
    return this.#options.rollBytes ?? Math.max(ROLL_BYTES, this.#checkpointBytes / CHECKPOINT_SHARE)
  }

  /** What an opening would go through, as a part of what is worth a checkpoint. */
  get #load(): number {
    const { bytes, groups } = this.journal
    const others = this.state.changes * CHANGE_LOAD_BYTES + groups * (this.#options.groupBytes ?? 0)
    return Math.max(bytes / this.#rollBytes, others / Math.max(ROLL_BYTES, this.#checkpointBytes))
  }

  get #isOverLimit(): boolean {
    return this.journal.bytes > BACKPRESSURE_FACTOR * this.#rollBytes
  }

  /** Whether a roll on a full disk would fit into the reserve, and give back more than it takes. */
  #freesSpace(): boolean {
    let bytes = this.#checkpointBytes + this.state.changes * CHANGE_BYTES
    for (const log of this.state.logs.changed.values()) {
      for (const block of log?.blocks ?? []) bytes += block.bytes
    }
    return bytes <= this.space.reserveBytes && bytes <= this.journal.bytes / 2
  }

  /** Resolves once groups may be written again. They go to the next journal. */
  #beginRoll(): Promise<void> {
    return new Promise((proceed) => {
      this.#rolling = this.#roll(proceed)
        .catch((error) => this.#rollFailed(error))
        .finally(() => {
          this.#rolling = undefined
          proceed()
        })
    })
  }

  async #roll(proceed: () => void): Promise<void> {
    const write = (work: () => Promise<unknown>) =>
      this.space.isFull ? this.space.write('frees', work) : work()
    await write(() => this.journal.begin())
    const { number } = this.journal.files.at(-1)!
    const ended = this.journal.files.slice(0, -1)
    const roll = new Roll(this.#medium, this.state, ended, number, () => this.#isClosed)
    proceed()
    await write(() => roll.write())
    roll.apply()
    this.#checkpointBytes = roll.checkpointBytes
    this.#rollFailure = undefined
    this.#rollAt = 1
    this.journal.drop(number)
    await this.#removeUnused()
    await this.space.makeRoom(true)
  }

  #rollFailed(error: unknown): void {
    if (error instanceof RollAborted) return
    const { kind, message } = mediumFailure(error, true)
    const text = `journals of ${this.journal.bytes} bytes cannot be rolled: ${message}`
    this.#rollFailure = new StorageFailure(kind, text, { nothingWritten: true, cause: error })
    this.#rollAt = this.#load + 1
    if (!isFullError(error)) this.#onError(this.#rollFailure)
  }

  /** Resolves to whether there were any. */
  async #removeUnusedSegments(): Promise<boolean> {
    const { segments } = this.state
    const unused = [...segments.values()].filter(({ runs }) => runs === 0)
    if (unused.length === 0) return false
    // What made them unused must be durable before.
    this.journal.requestSync()
    await this.committer.commit('frees', 0, () => [])
    for (const { number } of unused) segments.delete(number)
    await this.#removeUnused()
    return true
  }

  async #removeUnused(): Promise<void> {
    const [first] = this.journal.files
    if (first !== undefined) await removeUnused(this.#medium, this.state, first.number)
  }
}
