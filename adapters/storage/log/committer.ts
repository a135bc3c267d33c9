import { macrotask } from '../../../src/runtime/macrotask.ts'
import { StorageConflict, StorageFailure } from '../../../src/storage/errors.ts'
import { GroupCommit, type PendingItem } from '../../../src/storage/group-commit.ts'
import { isFullError, mediumFailure } from '../media/medium.ts'
import { type FramePlace, GROUP_BYTES_MAX, GroupWriter, type Journal } from './journal.ts'
import type { Space } from './space.ts'
import { Stage, type Staged } from './stage.ts'
import type { State } from './state.ts'

/** A smaller group is not worth a sync of its own. */
const PIPELINED_CALLS_MIN = 4

/** Whether a call is written even if the disk is full, because it frees space or changes little. */
export type CallKind = 'adds' | 'frees'

/** A call that waits to be written, or work that is done between groups. */
type Item =
  | {
      readonly kind: CallKind
      /** Estimated length in the journal. */
      readonly bytes: number
      readonly stage: (stage: Stage) => Staged
    }
  | { readonly kind: 'exclusive'; readonly bytes: 0; readonly work: () => Promise<void> }

interface Call extends PendingItem<Item> {
  readonly item: Exclude<Item, { readonly kind: 'exclusive' }>
}

interface StagedCall {
  readonly call: Call
  readonly staged: Staged
  readonly places: readonly FramePlace[]
}

/** What goes on beside the groups. */
export interface Housekeeping {
  /** Waits until the next group may be written. */
  pause(): Promise<void>
  /** Called after each group. */
  groupWritten(): void
  /** Set while work has fallen behind: nothing is written until it settles. */
  readonly backpressure: Promise<unknown> | undefined
  /** Why calls that add data are refused. */
  refusal(): StorageFailure | undefined
}

/**
 * Group commit. Calls are checked when their group is formed, against the durable state and the calls before
 * them in the group. So calls that depend on a failed group fail with a conflict.
 */
export class Committer {
  readonly #state: State
  readonly #journal: Journal
  readonly #space: Space
  readonly #housekeeping: Housekeeping
  readonly #group = new GroupWriter()
  readonly #calls = new GroupCommit<Item>(
    (items) => this.#writeAll(items),
    ({ bytes }) => bytes,
    GROUP_BYTES_MAX,
    () => this.#gather(),
  )
  #waiting = 0
  /** The number of calls in the group that was just written. */
  #written = 0

  constructor(state: State, journal: Journal, space: Space, housekeeping: Housekeeping) {
    this.#state = state
    this.#journal = journal
    this.#space = space
    this.#housekeeping = housekeeping
  }

  /** Resolves when the changes are durable and visible. `stage` throws if they cannot be made. */
  commit(kind: CallKind, bytes: number, stage: (stage: Stage) => Staged): Promise<void> {
    this.#waiting++
    return this.#calls.add({ kind, bytes, stage })
  }

  /** Runs `work` between two groups, while the state does not change. */
  async runExclusively<Result>(work: () => Promise<Result>): Promise<Result> {
    let result: Result
    await this.#calls.add({
      kind: 'exclusive',
      bytes: 0,
      work: async () => {
        result = await work()
      },
    })
    return result!
  }

  /**
   * Lets the callers of the group before, which are acknowledged, make their next calls, which then share the
   * group. If about as many others wait, they are written meanwhile.
   */
  async #gather(): Promise<void> {
    await this.#housekeeping.pause()
    const isPipelined = this.#waiting >= PIPELINED_CALLS_MIN && 2 * this.#waiting >= this.#written
    if (!isPipelined || this.#written === 0) await macrotask()
    this.#written = 0
  }

  async #writeAll(items: readonly PendingItem<Item>[]): Promise<void> {
    for (const { item, resolve, reject } of items) {
      if (item.kind === 'exclusive') await item.work().then(resolve, reject)
    }
    const calls = items.filter((call): call is Call => call.item.kind !== 'exclusive')
    if (calls.length === 0) return
    this.#waiting -= calls.length
    const { backpressure } = this.#housekeeping
    if (backpressure !== undefined) {
      await backpressure
      // Its outcome decides whether calls are refused.
      await macrotask()
    }
    await this.#write(calls)
    this.#written = calls.length
    this.#housekeeping.groupWritten()
  }

  /**
   * Writes and settles the calls. If those that add data have no room, the others are written without them.
   */
  async #write(calls: readonly Call[]): Promise<void> {
    const refusal = this.#housekeeping.refusal()
    const allowed = refusal === undefined ? calls : withoutAdding(calls, refusal)
    if (allowed.length === 0) return
    const kind = allowed.some(({ item }) => item.kind === 'adds') ? 'adds' : 'frees'
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
      const place = { offset: start + offset, bytes }
      for (const change of changes) this.#state.apply(change, journal, place)
    }
    call.resolve()
  }

  #stage(calls: readonly Call[]) {
    const stage = new Stage(this.#state)
    const staged: StagedCall[] = []
    const refused: { readonly call: Call; readonly error: unknown }[] = []
    for (const call of calls) {
      try {
        const own = call.item.stage(stage)
        const places = this.#group.add(own.frames)
        stage.note(own)
        staged.push({ call, staged: own, places })
      } catch (error) {
        refused.push({ call, error: refusalOf(error) })
      }
    }
    return { staged, refused }
  }
}

/** Rejects the calls that add data, and returns the others. */
function withoutAdding(calls: readonly Call[], failure: unknown): readonly Call[] {
  for (const call of calls) if (call.item.kind === 'adds') call.reject(failure)
  return calls.filter(({ item }) => item.kind === 'frees')
}

function refusalOf(error: unknown): unknown {
  if (StorageConflict.is(error) || StorageFailure.is(error)) return error
  return new StorageFailure('io', (error as Error).message, { nothingWritten: true, cause: error })
}
