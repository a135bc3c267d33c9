import { macrotask } from '../../../../src/runtime/macrotask.ts'
import { StorageConflict, StorageFailure } from '../../../../src/storage/errors.ts'
import { fileFailure, isFullError } from '../files/errors.ts'
import type { Reserve } from '../files/reserve.ts'
import type { Change } from '../state/change.ts'
import type { State } from '../state/state.ts'
import { GROUP_BYTES_MAX, GroupWriter } from './group.ts'
import type { Journals, WritableJournal } from './journals.ts'
import { Stage } from './stage.ts'

/** A smaller group is not worth a sync of its own. */
const PIPELINED_CALLS_MIN = 4

/** A call that waits to be written. */
interface PendingCall {
  /** Estimated length in the journal. */
  readonly bytes: number
  /** Whether it is written even if the disk is full. */
  readonly mayUseReserve: boolean
  /** Loads what `stage` needs. Undefined if it is in memory. */
  readonly prepare: () => Promise<void> | undefined
  readonly stage: (stage: Stage) => readonly Change[]
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}

interface StagedCall {
  readonly call: PendingCall
  readonly changes: readonly Change[]
  readonly place: { readonly offset: number; readonly bytes: number } | undefined
}

interface RejectedCall {
  readonly call: PendingCall
  readonly error: unknown
}

/** Background work that follows what the committer writes. */
export interface Housekeeping {
  /** Called after each group. */
  groupWritten(): void
  /** Set while maintenance has fallen behind: nothing is written until it settles. */
  readonly backpressure: Promise<unknown> | undefined
  /** Returns the failure of calls that add data while maintenance fails; undefined if they may be written. */
  refusal(): StorageFailure | undefined
  /** Whether files are being rewritten or removed, which may free space and needs some. */
  readonly isBusy: boolean
}

/** Work that needs the state not to change. */
type Exclusive = () => Promise<void>

/**
 * Group commit. One group is written at a time, and the calls that arrive meanwhile form the next one. Calls
 * are checked when their group is formed, against the durable state and the calls before them in the group.
 * So calls that depend on a failed group fail with a conflict.
 */
export class Committer {
  readonly #state: State
  readonly #journals: Journals
  readonly #reserve: Reserve
  readonly #housekeeping: Housekeeping
  readonly #group = new GroupWriter()
  #waiting: PendingCall[] = []
  /** The number of calls in the group that was just written. */
  #writtenCalls = 0
  readonly #exclusive: Exclusive[] = []
  #running: Promise<void> | undefined
  /** The reason why nothing can be written any more: the state in memory differs from the journal. */
  #broken: StorageFailure | undefined
  /** Wakes a loop that waits for maintenance. */
  #wake: () => void = () => {}

  constructor(state: State, journals: Journals, reserve: Reserve, housekeeping: Housekeeping) {
    this.#state = state
    this.#journals = journals
    this.#reserve = reserve
    this.#housekeeping = housekeeping
  }

  /** Why nothing can be written any more until the storage is opened again. */
  get failure(): StorageFailure | undefined {
    return this.#broken ?? this.#journals.failure
  }

  /** Throws if nothing can be written any more until the storage is opened again. */
  assertWritable(): void {
    if (this.#broken !== undefined) throw this.#broken
    this.#journals.assertInPlace()
  }

  /**
   * Resolves when the changes are durable and visible. `stage` throws if they cannot be made.
   *
   * @param mayUseReserve Whether the call frees space, or changes little, so that it is written even if the
   *   disk is full.
   * @param prepare Loads what `stage` needs, and what applying its changes needs. Returns undefined if that
   *   is in memory.
   */
  commit(
    bytes: number,
    stage: (stage: Stage) => readonly Change[],
    mayUseReserve: boolean,
    prepare: () => Promise<void> | undefined,
  ): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ bytes, mayUseReserve, prepare, stage, resolve, reject })
      this.#run()
    })
  }

  /** Runs `work` between two groups. */
  runExclusively<Result>(work: () => Result | Promise<Result>): Promise<Result> {
    return new Promise((resolve, reject) => {
      this.#exclusive.push(async () => {
        try {
          if (this.#broken !== undefined) throw this.#broken
          resolve(await work())
        } catch (error) {
          reject(error)
        }
      })
      this.#wake()
      this.#run()
    })
  }

  /** Resolves when no call is waiting. */
  async idle(): Promise<void> {
    while (this.#running !== undefined) await this.#running
  }

  #run(): void {
    this.#running ??= this.#loop()
  }

  async #loop(): Promise<void> {
    try {
      do {
        if (!this.#isPipelined) await macrotask()
        for (const work of this.#exclusive.splice(0)) await work()
        if (this.#waiting.length === 0) continue
        const { backpressure } = this.#housekeeping
        if (backpressure !== undefined) {
          if (this.#exclusive.length === 0) await Promise.race([backpressure, this.#woken()])
          continue
        }
        this.#writtenCalls = 0
        await this.#write(this.#nextGroup())
        this.#housekeeping.groupWritten()
      } while (this.#waiting.length > 0 || this.#exclusive.length > 0)
    } finally {
      // Synchronously: a call that arrives from here on starts a new loop.
      this.#running = undefined
      this.#writtenCalls = 0
    }
  }

  /**
   * Whether the next group is written at once, so that the callers of the one before are acknowledged
   * meanwhile. With fewer calls waiting, those callers first get a turn of the event loop to make their next
   * calls, which then share the group.
   */
  get #isPipelined(): boolean {
    const waiting = this.#waiting.length
    return this.#writtenCalls > 0 && waiting >= PIPELINED_CALLS_MIN && 2 * waiting >= this.#writtenCalls
  }

  #woken(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve
    })
  }

  #nextGroup(): PendingCall[] {
    let bytes = 0
    let count = 0
    while (count < this.#waiting.length && (count === 0 || bytes < GROUP_BYTES_MAX)) {
      bytes += this.#waiting[count++]!.bytes
    }
    if (count === this.#waiting.length) {
      const all = this.#waiting
      this.#waiting = []
      return all
    }
    return this.#waiting.splice(0, count)
  }

  /** Writes the calls; if the disk is full, only those that may use the reserve. */
  async #write(calls: readonly PendingCall[]): Promise<void> {
    const reserve = this.#reserve
    const refusal = this.#housekeeping.refusal()
    const allowed = refusal === undefined ? calls : rejectOthers(calls, refusal)
    const admitted = reserve.isMissing ? await this.#admit(allowed) : allowed
    if (admitted.length === 0) return
    let failure = await this.#writeGroup(admitted)
    if (failure === undefined) {
      if (reserve.isFull) reserve.markWritable(largestOf(admitted))
      return
    }
    reserve.markFull(largestOf(admitted) || undefined)
    const left = rejectOthers(admitted, failure)
    if (left.length === 0) return
    if (left.length < admitted.length) failure = await this.#writeGroup(left)
    if (failure !== undefined && (await reserve.release())) failure = await this.#writeGroup(left)
    if (failure !== undefined) for (const call of left) call.reject(failure)
  }

  /** Rejects calls that may not use the reserve if there is no room for it: later trims would find none. */
  async #admit(calls: readonly PendingCall[]): Promise<readonly PendingCall[]> {
    const reserve = this.#reserve
    if (calls.every(mayUseReserve)) return calls
    // The space is left to work that frees more.
    const isWithheld = reserve.isFull && this.#housekeeping.isBusy
    if (!isWithheld && (await reserve.allocate())) return calls
    const message = `no space left for the reserve of ${reserve.bytes} bytes; trim or delete streams`
    return rejectOthers(calls, new StorageFailure('quota', message, { nothingWritten: true }))
  }

  /** Settles the calls. If the disk is full and nothing was written, returns the failure instead. */
  async #writeGroup(calls: readonly PendingCall[]): Promise<StorageFailure | undefined> {
    let journal: WritableJournal
    let unprepared: ReadonlyMap<PendingCall, unknown>
    try {
      if (this.#broken !== undefined) throw this.#broken
      journal = await this.#journals.ready()
      unprepared = await prepareAll(calls)
    } catch (error) {
      if (isRepeatable(error)) return error
      for (const call of calls) call.reject(error)
      return undefined
    }
    this.#group.begin(journal.file.salt)
    const { staged, refused } = this.#stage(calls, unprepared)
    try {
      if (!this.#group.isEmpty) await this.#journals.write(this.#group.end(journal.sequence))
    } catch (error) {
      if (isRepeatable(error)) return error
      for (const { call } of staged) call.reject(error)
      // A rejection may depend on calls that were not written.
      for (const { call } of refused) call.reject(fileFailure(error, true))
      return undefined
    }
    for (const { call, error } of refused) call.reject(error)
    try {
      for (const one of staged) this.#apply(one, journal)
      this.#writtenCalls = calls.length
    } catch (error) {
      this.#broken = brokenError(error, true)
      // Calls that have resolved are not affected.
      for (const { call } of staged) call.reject(brokenError(error, false))
    }
    this.#state.release()
    return undefined
  }

  #apply({ call, changes, place }: StagedCall, { file, end }: WritableJournal): void {
    if (place !== undefined) {
      const written = { journal: file, offset: end + place.offset, bytes: place.bytes }
      for (const change of changes) this.#state.apply(change, written)
    }
    call.resolve()
  }

  #stage(
    calls: readonly PendingCall[],
    unprepared: ReadonlyMap<PendingCall, unknown>,
  ): { readonly staged: StagedCall[]; readonly refused: RejectedCall[] } {
    const stage = new Stage(this.#state)
    const staged: StagedCall[] = []
    const refused: RejectedCall[] = []
    for (const call of calls) {
      if (unprepared.has(call)) {
        refused.push({ call, error: rejectionOf(unprepared.get(call)) })
        continue
      }
      stage.begin()
      try {
        const changes = call.stage(stage)
        const place = changes.length > 0 ? this.#group.add(changes) : undefined
        staged.push({ call, changes, place })
      } catch (error) {
        stage.rollback()
        refused.push({ call, error: rejectionOf(error) })
      }
    }
    return { staged, refused }
  }
}

/** Resolves to the reasons why calls could not be prepared. */
async function prepareAll(calls: readonly PendingCall[]): Promise<ReadonlyMap<PendingCall, unknown>> {
  const failures = new Map<PendingCall, unknown>()
  const loading = calls.flatMap((call) => call.prepare()?.catch((error) => failures.set(call, error)) ?? [])
  if (loading.length > 0) await Promise.all(loading)
  return failures
}

function mayUseReserve(call: PendingCall): boolean {
  return call.mayUseReserve
}

/** Rejects the calls that may not use the reserve, and returns those that may. */
function rejectOthers(calls: readonly PendingCall[], failure: StorageFailure): readonly PendingCall[] {
  for (const call of calls) if (!call.mayUseReserve) call.reject(failure)
  return calls.filter(mayUseReserve)
}

/** The estimated length of the largest call that may not use the reserve; 0 without one. */
function largestOf(calls: readonly PendingCall[]): number {
  return calls.reduce((bytes, call) => Math.max(bytes, call.mayUseReserve ? 0 : call.bytes), 0)
}

function isRepeatable(error: unknown): error is StorageFailure {
  return isFullError(error) && StorageFailure.is(error) && error.nothingWritten
}

function brokenError(error: unknown, nothingWritten: boolean): StorageFailure {
  const message = `cannot apply a change: ${(error as Error).message}; open the storage again`
  return new StorageFailure('io', message, { nothingWritten, cause: error })
}

function rejectionOf(error: unknown): unknown {
  if (StorageConflict.is(error) || StorageFailure.is(error)) return error
  return new StorageFailure('io', (error as Error).message, { nothingWritten: true, cause: error })
}
