import type { Clock } from '../../../src/runtime/clock.ts'
import { SerialQueue } from '../../../src/runtime/serial-queue.ts'
import type { Durability, Reclaimed, ReclaimLimits } from '../../../src/storage/contract.ts'
import { StorageFailure } from '../../../src/storage/errors.ts'
import { isFullError, lostFile, type Medium, mediumFailure } from '../media/medium.ts'
import { Committer, type Housekeeping } from './committer.ts'
import { fileName } from './format.ts'
import type { Journal } from './journal.ts'
import { LogReader } from './reader.ts'
import { reclaim } from './reclaim.ts'
import { type Recovered, recover, removeUnused } from './recovery.ts'
import { Roll, RollAborted } from './roll.ts'
import { Space } from './space.ts'
import type { State } from './state.ts'

/** Journals are rolled when they have so many bytes. */
const ROLL_BYTES = 64 * 1_048_576
/** With a large state they are rolled later, so that checkpoints do not multiply what is written. */
const CHECKPOINT_SHARE = 4
/** They are also rolled when so many documents and logs were changed, which an opening applies one by one. */
const CHANGES_MAX = 65_536
/** With a large state, when there is a change for so many bytes of it. */
const BYTES_PER_CHANGE = 1024
/** They are also rolled when they have so many pieces, where an opening reads each by a request. */
const PIECES_MAX = 1_000
/** With a large state, when there is a piece for so many bytes of it. */
const BYTES_PER_PIECE = 65_536
/** The factor of the roll size up to which appends continue while journals are rolled. */
const BACKPRESSURE_FACTOR = 3
/** The factor up to which calls that add data are accepted while rolls fail: an opening reads all of it. */
const REFUSAL_FACTOR = 4
/** How often a roll is tried again while calls are refused, in milliseconds. */
const RETRY_MS = 60_000
/** What a changed document or log takes in a checkpoint, roughly. */
const CHANGE_BYTES = 400

export interface LogStorageOptions {
  readonly durability: Durability
  /** The size at which journals are rolled, in bytes. 64 MiB or a quarter of the state by default. */
  readonly rollBytes?: number | undefined
  /** The shortest time from one group to the next, in milliseconds. 0 by default. */
  readonly flushMs?: number | undefined
  /** The space that is reserved for a full disk, in bytes. 4 MiB by default. */
  readonly reserveBytes?: number | undefined
  /** Whether the disk is known to be full. */
  readonly isFull?: boolean | undefined
  readonly clock?: Clock | undefined
}

/** An open storage, and its work in the background. The sessions of engines stand on it. */
export class LogStore implements Housekeeping {
  readonly state: State
  readonly committer: Committer
  readonly reader: LogReader
  readonly space: Space
  readonly #medium: Medium
  readonly #journal: Journal
  readonly #options: LogStorageOptions
  readonly #onError: (error: unknown) => void
  /** Rolls and reclaims exclude each other. */
  readonly #queue = new SerialQueue()
  /** Logs that could not be read. */
  readonly #damaged = new Set<string>()
  #checkpointBytes: number
  #rolling: Promise<void> | undefined
  /** Settles with the roll that is being written: not while it waits for a reclaim, which writes groups. */
  #rolled: Promise<void> | undefined
  #removing: Promise<void> | undefined
  #rollFailure: { readonly error: StorageFailure; readonly at: number; readonly bytes: number } | undefined
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
    this.#medium = medium
    this.#journal = journal
    this.#options = options
    this.#onError = onError
    this.#checkpointBytes = checkpointBytes
    this.committer = new Committer(state, journal, space, this)
    this.reader = new LogReader(medium, state, journal)
    this.groupWritten()
  }

  /** @param onError Receives errors that belong to no call. */
  static async open(
    medium: Medium,
    options: LogStorageOptions,
    onError: (error: unknown) => void,
  ): Promise<LogStore> {
    try {
      const space = new Space(medium, options.isFull, options.reserveBytes)
      const recovered = await recover(medium, space, options.durability)
      return new LogStore(medium, space, recovered, options, onError)
    } catch (error) {
      await medium.close().catch(() => {})
      throw mediumFailure(error, true)
    }
  }

  /** Whether it can still be written, and nothing else removed or moved what it writes to. */
  get isUsable(): boolean {
    try {
      this.#medium.assertInPlace()
      return !this.#isClosed && this.#journal.failure === undefined
    } catch {
      return false
    }
  }

  /** Makes everything written so far durable, and everything later before it is acknowledged. */
  requireSync(): Promise<void> {
    return this.committer.runExclusively(() => this.#journal.requireSync())
  }

  assertWritable(): void {
    this.#journal.assertWritable()
    const refusal = this.#refusal()
    if (refusal !== undefined) throw refusal
  }

  async reclaim(limits: ReclaimLimits): Promise<Reclaimed> {
    const reclaimed = await this.#queue.run(() =>
      reclaim(this.#medium, this.state, this.committer, limits, this.#damaged),
    )
    await this.#makeRoom()
    return reclaimed
  }

  groupWritten(): void {
    if (this.#isClosed) return
    this.#rolling ??= this.#rollIfDue()
    this.#removing ??= this.#removeIfDue()
  }

  /** Waits until the next group may be written. */
  async pause(): Promise<void> {
    const { flushMs = 0, clock } = this.#options
    if (flushMs === 0 || clock === undefined) return
    const left = this.#groupAt + flushMs - clock.now()
    // A clock that went back delays no group for longer.
    if (left > 0) await new Promise<void>((resolve) => clock.schedule(Math.min(left, flushMs), resolve))
    this.#groupAt = clock.now()
  }

  get backpressure(): Promise<unknown> | undefined {
    return this.#journal.bytes > BACKPRESSURE_FACTOR * this.#rollBytes ? this.#rolled : undefined
  }

  refusal(): StorageFailure | undefined {
    const refusal = this.#refusal()
    // The roll may succeed by now.
    if (refusal !== undefined) this.groupWritten()
    return refusal
  }

  #refusal(): StorageFailure | undefined {
    const failure = this.#rollFailure
    if (failure === undefined || !this.#isOverLimit) return undefined
    const { kind, message } = failure.error
    const text = `journals have grown to ${this.#journal.bytes} bytes, because they cannot be rolled: ${message}`
    return new StorageFailure(kind, text, { nothingWritten: true, cause: failure.error })
  }

  get #rollBytes(): number {
    return this.#options.rollBytes ?? Math.max(ROLL_BYTES, this.#checkpointBytes / CHECKPOINT_SHARE)
  }

  get #isOverLimit(): boolean {
    return this.#journal.bytes > REFUSAL_FACTOR * this.#rollBytes
  }

  #now(): number {
    return this.#options.clock?.now() ?? 0
  }

  #isRollDue(): boolean {
    const { bytes, failure } = this.#journal
    const changesMax = Math.max(CHANGES_MAX, this.#checkpointBytes / BYTES_PER_CHANGE)
    const piecesMax = Math.max(PIECES_MAX, this.#checkpointBytes / BYTES_PER_PIECE)
    const isLong = bytes >= this.#rollBytes || this.state.changes >= changesMax
    if (failure !== undefined || !(isLong || (this.#medium.pieces ?? 0) >= piecesMax)) return false
    if (this.#rollFailure === undefined || bytes >= this.#rollFailure.bytes + this.#rollBytes) return true
    return (
      this.#isOverLimit &&
      Math.abs(this.#now() - this.#rollFailure.at) >= (this.#options.clock === undefined ? 0 : RETRY_MS)
    )
  }

  /** How much a roll would write, roughly. */
  #estimate(): number {
    let bytes = this.#checkpointBytes + this.state.changes * CHANGE_BYTES
    for (const log of this.state.logs.changed.values()) {
      for (const block of log?.blocks ?? []) bytes += block.bytes
    }
    return bytes
  }

  #rollIfDue(): Promise<void> | undefined {
    if (this.space.isFull) {
      // On a full disk a roll frees space, if what it writes fits into the reserve.
      if (this.#rollFailure?.bytes === this.#journal.bytes) return undefined
      const estimate = this.#estimate()
      if (estimate > this.space.reserveBytes || estimate > this.#journal.bytes / 2) return undefined
      return this.#inBackground(() => this.space.write('frees', () => this.#roll()))
    }
    return this.#isRollDue() ? this.#inBackground(() => this.#roll()) : undefined
  }

  #inBackground(roll: () => Promise<void>): Promise<void> {
    return this.#queue
      .run(roll)
      .catch((error: unknown) => {
        if (error instanceof RollAborted) return
        this.#rollFailure = { error: mediumFailure(error, true), at: this.#now(), bytes: this.#journal.bytes }
        if (!isFullError(error)) this.#onError(this.#rollFailure.error)
      })
      .finally(async () => {
        this.#rolling = undefined
        await this.#makeRoom()
      })
  }

  async #roll(): Promise<void> {
    const { rolled } = await this.committer.runExclusively(async () => {
      await this.#assertComplete()
      const { number } = await this.#journal.begin()
      const ended = this.#journal.files.filter((file) => file.number < number)
      const roll = new Roll(this.#medium, this.state, ended, number, () => this.#isClosed)
      const rolled = this.#replaceFiles(roll, number)
      this.#rolled = rolled.catch(() => {})
      return { rolled }
    })
    try {
      await rolled
    } finally {
      this.#rolled = undefined
    }
  }

  async #replaceFiles(roll: Roll, next: number): Promise<void> {
    await roll.write()
    roll.apply()
    this.#checkpointBytes = roll.checkpointBytes
    this.#rollFailure = undefined
    this.#journal.drop(next)
    // What made files unused must be durable before they are removed.
    await this.#journal.sync()
    await removeUnused(this.#medium, this.state, next)
    this.space.filesRemoved()
  }

  /** Ends all writing if something else removed a file without which the next opening would fail. */
  async #assertComplete(): Promise<void> {
    const names = new Set((await this.#medium.list()).map(({ name }) => name))
    const needed = this.#journal.files.map(({ number }) => fileName('journal', number))
    for (const { number, runs } of this.state.segments.values()) {
      if (runs > 0) needed.push(fileName('segment', number))
    }
    const lost = needed.find((name) => !names.has(name))
    if (lost !== undefined) throw this.#journal.fail(lostFile(lost))
  }

  /** Allocates the reserve again once the disk has room for it. */
  async #makeRoom(): Promise<void> {
    if (!this.space.isFull || this.#isClosed) return
    this.groupWritten()
    if (this.#rolling === undefined && this.#removing === undefined) await this.space.allocate()
  }

  #removeIfDue(): Promise<void> | undefined {
    if (this.#rolling !== undefined || !this.state.hasUnusedSegments) return undefined
    this.state.hasUnusedSegments = false
    const unused = [...this.state.segments.values()].filter(({ runs }) => runs === 0)
    return this.#queue
      .run(async () => {
        await this.#journal.sync()
        for (const { number } of unused) {
          await this.#medium.remove(fileName('segment', number))
          this.state.segments.delete(number)
        }
        this.space.filesRemoved()
      })
      .catch((error: unknown) => this.#onError(mediumFailure(error, true)))
      .finally(async () => {
        this.#removing = undefined
        await this.#makeRoom()
      })
  }

  /** Calls must have settled. Runs all steps, and then rejects with the first failure. */
  async close(): Promise<void> {
    this.#isClosed = true
    const steps = [
      () => Promise.all([this.#rolling, this.#removing]),
      // Without the closing group, the next opening must assume that the last group is not durable.
      () => this.#journal.close().catch(() => {}),
      () => this.space.idle(),
      () => this.#medium.close(),
    ]
    const failures: unknown[] = []
    for (const step of steps) {
      try {
        await step()
      } catch (error) {
        failures.push(error)
      }
    }
    if (failures.length > 0) throw failures[0]
  }
}
