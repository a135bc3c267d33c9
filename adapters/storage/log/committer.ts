import { macrotask } from '../../../src/runtime/macrotask.ts'
import { StorageConflict, StorageFailure } from '../../../src/storage/errors.ts'
import { GroupCommit, type PendingItem } from '../../../src/storage/group-commit.ts'
import { isFullError, mediumFailure } from '../media/medium.ts'
import type { Journal, StagedFrame } from './journal.ts'
import type { Space, WriteKind } from './space.ts'
import { Stage } from './stage.ts'
import type { Span, State } from './state.ts'

/** Calls that wait are written together up to this size, in bytes; a single call may be larger. */
const GROUP_BYTES_MAX = 8 * 1_048_576
/** A smaller group is not worth a sync of its own. */
const PIPELINED_CALLS_MIN = 4

interface Item {
  readonly kind: WriteKind
  /** Estimated length in the journal. */
  readonly bytes: number
  readonly stage: (stage: Stage) => readonly StagedFrame[]
}

type Call = PendingItem<Item>

interface StagedCall {
  readonly call: Call
  readonly frames: readonly StagedFrame[]
  /** The places of its frames. */
  readonly spans: readonly Span[]
}

/** What goes on beside the groups. */
export interface Housekeeping {
  /** Waits until the next group may be formed. */
  pause(): Promise<void>
  /** Waits until the group may be written. Resolves to why it may not add data, if so. */
  beforeGroup(): Promise<StorageFailure | undefined>
  /** No group is written until it resolves. */
  afterGroup(): Promise<void>
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
  readonly #calls = new GroupCommit<Item>(
    (calls) => this.#writeAll(calls),
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
  commit(kind: WriteKind, bytes: number, stage: Item['stage']): Promise<void> {
    this.#waiting++
    return this.#calls.add({ kind, bytes, stage })
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

  async #writeAll(calls: readonly Call[]): Promise<void> {
    this.#waiting -= calls.length
    const refusal = await this.#housekeeping.beforeGroup()
    await this.#write(refusal === undefined ? calls : withoutAdding(calls, refusal))
    this.#written = calls.length
    await this.#housekeeping.afterGroup()
  }

  /**
   * Writes and settles the calls. If those that add data have no room, the others are written without them.
   */
  async #write(calls: readonly Call[]): Promise<void> {
    if (calls.length === 0) return
    const kind = calls.some(({ item }) => item.kind === 'adds') ? 'adds' : 'frees'
    try {
      await this.#space.write(kind, () => this.#writeGroup(calls))
    } catch (error) {
      if (kind === 'adds' && isFullError(error)) return this.#write(withoutAdding(calls, error))
      for (const call of calls) call.reject(error)
    }
  }

  /** Rejects if nothing was written; otherwise settles the calls. */
  async #writeGroup(calls: readonly Call[]): Promise<void> {
    const journal = await this.#journal.beginGroup()
    const { staged, refused } = this.#stage(calls)
    try {
      await this.#journal.write()
    } catch (error) {
      if (isFullError(error) && (error as StorageFailure).nothingWritten) throw error
      for (const { call } of staged) call.reject(error)
      // A refusal may rest on calls that were not written.
      for (const { call } of refused) call.reject(mediumFailure(error, true))
      return
    }
    for (const { call, error } of refused) call.reject(error)
    for (const { call, frames, spans } of staged) {
      for (const [index, { changes }] of frames.entries()) {
        for (const change of changes) this.#state.apply(change, journal, spans[index]!)
      }
      call.resolve()
    }
  }

  #stage(calls: readonly Call[]) {
    const stage = new Stage(this.#state)
    const staged: StagedCall[] = []
    const refused: { readonly call: Call; readonly error: unknown }[] = []
    /** Why a call could not be added: there was no memory for it. */
    let failure: unknown
    for (const call of calls) {
      let frames: readonly StagedFrame[]
      try {
        // It would be checked against what is not written.
        if (failure !== undefined) throw failure
        frames = call.item.stage(stage)
      } catch (error) {
        refused.push({ call, error: refusalOf(error) })
        continue
      }
      try {
        staged.push({ call, frames, spans: this.#journal.addAll(frames) })
      } catch (error) {
        failure = error
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
