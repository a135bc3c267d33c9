import { macrotask } from '../../../src/runtime/macrotask.ts'
import { StorageConflict, StorageFailure } from '../../../src/storage/errors.ts'
import { isFullError, mediumFailure } from '../media/medium.ts'
import { GROUP_BYTES_MAX, GroupWriter, type Journal } from './journal.ts'
import type { Space } from './space.ts'
import { Stage, type Staged } from './stage.ts'
import type { State } from './state.ts'

/** A smaller group is not worth a sync of its own. */
const PIPELINED_CALLS_MIN = 4

/** Whether a call is written even if the disk is full, because it frees space or changes little. */
export type CallKind = 'adds' | 'frees'

/** A call that waits to be written. */
interface Call {
  readonly kind: CallKind
  /** Estimated length in the journal. */
  readonly bytes: number
  readonly stage: (stage: Stage) => Staged
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}

interface StagedCall {
  readonly call: Call
  readonly staged: Staged
  readonly places: readonly { readonly offset: number; readonly bytes: number }[]
}

/** Work that follows what is written. */
export interface Housekeeping {
  /** Called after each group. */
  groupWritten(): void
  /** Set while work has fallen behind: nothing is written until it settles. */
  readonly backpressure: Promise<unknown> | undefined
  /** Why calls that add data are refused. */
  refusal(): StorageFailure | undefined
}

/**
 * Group commit. One group is written at a time, and the calls that arrive meanwhile form the next one. Calls
 * are checked when their group is formed, against the durable state and the calls before them in the group.
 * So calls that depend on a failed group fail with a conflict.
 */
export class Committer {
  readonly #state: State
  readonly #journal: Journal
  readonly #space: Space
  readonly #housekeeping: Housekeeping
  readonly #group = new GroupWriter()
  #waiting: Call[] = []
  #exclusive: (() => Promise<void>)[] = []
  #running: Promise<void> | undefined
  /** The number of calls in the group that was just written. */
  #writtenCalls = 0
  /** Wakes a loop that waits for housekeeping. */
  #wake: () => void = () => {}

  constructor(state: State, journal: Journal, space: Space, housekeeping: Housekeeping) {
    this.#state = state
    this.#journal = journal
    this.#space = space
    this.#housekeeping = housekeeping
  }

  /** Resolves when the changes are durable and visible. `stage` throws if they cannot be made. */
  commit(kind: CallKind, bytes: number, stage: (stage: Stage) => Staged): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ kind, bytes, stage, resolve, reject })
      this.#run()
    })
  }

  /** Runs `work` between two groups, while the state does not change. */
  runExclusively<Result>(work: () => Result | Promise<Result>): Promise<Result> {
    return new Promise((resolve, reject) => {
      this.#exclusive.push(async () => {
        try {
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
        await this.#write(this.#nextCalls())
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

  #nextCalls(): Call[] {
    let bytes = 0
    let count = 0
    while (count < this.#waiting.length && (count === 0 || bytes < GROUP_BYTES_MAX)) {
      bytes += this.#waiting[count++]!.bytes
    }
    return this.#waiting.splice(0, count)
  }

  /**
   * Writes and settles the calls. If those that add data have no room, the others are written without them.
   */
  async #write(calls: readonly Call[]): Promise<void> {
    const refusal = this.#housekeeping.refusal()
    const allowed = refusal === undefined ? calls : withoutAdding(calls, refusal)
    if (allowed.length === 0) return
    const kind = allowed.some((call) => call.kind === 'adds') ? 'adds' : 'frees'
    try {
      await this.#space.write(kind, () => this.#writeGroup(allowed))
    } catch (error) {
      const left = kind === 'adds' && isFullError(error) ? withoutAdding(allowed, error) : allowed
      if (left === allowed) for (const call of left) call.reject(error)
      else if (left.length > 0) await this.#write(left)
    }
  }

  /** Rejects if nothing was written; otherwise settles the calls. */
  async #writeGroup(calls: readonly Call[]): Promise<void> {
    const journal = await this.#journal.current()
    this.#group.begin(journal.salt)
    const { staged, refused } = this.#stage(calls)
    const start = journal.end
    if (!this.#group.isEmpty) {
      try {
        await this.#journal.write(this.#group)
      } catch (error) {
        if (isFullError(error) && (error as StorageFailure).nothingWritten) throw error
        for (const { call } of staged) call.reject(error)
        // A refusal may rest on calls that were not written.
        for (const { call } of refused) call.reject(mediumFailure(error, true))
        return
      }
    }
    for (const { call, error } of refused) call.reject(error)
    try {
      for (const one of staged) this.#apply(one, journal.number, start)
      this.#writtenCalls = calls.length
    } catch (error) {
      const message = `cannot apply a change: ${(error as Error).message}`
      this.#journal.fail(new StorageFailure('io', message, { nothingWritten: false, cause: error }))
      // Calls that have resolved are not affected.
      for (const { call } of staged) call.reject(mediumFailure(error, false))
    }
  }

  #apply({ call, staged, places }: StagedCall, journal: number, start: number): void {
    for (const [index, { changes }] of staged.frames.entries()) {
      const { offset, bytes } = places[index]!
      const place = { journal, offset: start + offset, bytes }
      for (const change of changes) this.#state.apply(change, place)
    }
    call.resolve()
  }

  #stage(calls: readonly Call[]) {
    const stage = new Stage(this.#state)
    const staged: StagedCall[] = []
    const refused: { readonly call: Call; readonly error: unknown }[] = []
    for (const call of calls) {
      const mark = this.#group.mark()
      try {
        const own = call.stage(stage)
        const places = own.frames.map(({ changes, data }) => this.#group.add(changes, data))
        stage.note(own)
        staged.push({ call, staged: own, places })
      } catch (error) {
        this.#group.truncate(mark)
        refused.push({ call, error: refusalOf(error) })
      }
    }
    return { staged, refused }
  }
}

/** Rejects the calls that add data, and returns the others. */
function withoutAdding(calls: readonly Call[], failure: unknown): readonly Call[] {
  for (const call of calls) if (call.kind === 'adds') call.reject(failure)
  return calls.filter(({ kind }) => kind === 'frees')
}

function refusalOf(error: unknown): unknown {
  if (StorageConflict.is(error) || StorageFailure.is(error)) return error
  return new StorageFailure('io', (error as Error).message, { nothingWritten: true, cause: error })
}
