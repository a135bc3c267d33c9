import { macrotask } from '../../../src/runtime/macrotask.ts'
import { splitBlock } from '../../../src/storage/block-sizes.ts'
import {
  type DocumentVersions,
  type LogHeads,
  planCommit,
  type SerializedChange,
} from '../../../src/storage/commit-plan.ts'
import type { AppendRequest, Collection, Head } from '../../../src/storage/contract.ts'
import { StorageConflict, StorageFailure } from '../../../src/storage/errors.ts'
import { GroupCommit, type PendingItem } from '../../../src/storage/group-commit.ts'
import { assertExpectedHead, writeStateChange } from '../../../src/storage/heads.ts'
import { isFullError, mediumFailure } from '../media/medium.ts'
import type { Journal, StagedFrame } from './journal.ts'
import { BLOCK_DATA_BYTES } from './segment.ts'
import type { Space, WriteKind } from './space.ts'
import type { State } from './state.ts'

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
      // An error of another kind: there was no memory for the group.
      const failure = StorageFailure.is(error) ? error : mediumFailure(error, true)
      for (const call of calls) call.reject(failure)
    }
  }

  /** Rejects if nothing was written; otherwise settles the calls. */
  async #writeGroup(calls: readonly Call[]): Promise<void> {
    const journal = await this.#journal.beginGroup()
    const stage = new Stage(this.#state)
    const staged: { readonly call: Call; readonly frames: readonly StagedFrame[] }[] = []
    const refused: { readonly call: Call; readonly error: unknown }[] = []
    for (const call of calls) {
      try {
        staged.push({ call, frames: call.item.stage(stage) })
      } catch (error) {
        refused.push({ call, error: StorageConflict.is(error) ? error : mediumFailure(error, true) })
      }
    }
    const spans = staged.map(({ frames }) => frames.map((frame) => this.#journal.add(frame)))
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
    for (const [index, { call, frames }] of staged.entries()) {
      for (const [i, { changes }] of frames.entries()) {
        for (const change of changes) this.#state.apply(change, journal, spans[index]![i]!)
      }
      call.resolve()
    }
  }
}

/** Rejects the calls that add data, and returns the others. */
function withoutAdding(calls: readonly Call[], failure: unknown): readonly Call[] {
  for (const call of calls) if (call.item.kind === 'adds') call.reject(failure)
  return calls.filter(({ item }) => item.kind === 'frees')
}

/**
 * The state as it will be once the current group is durable: what the calls of the group are checked against,
 * in order. A call that throws changes nothing.
 */
export class Stage implements DocumentVersions, LogHeads {
  readonly #state: State
  /** Null: deleted, also below. */
  readonly #heads = new Map<string, Head | null>()
  readonly #versions = new Map<string, number | null>()

  constructor(state: State) {
    this.#state = state
  }

  /** Throws `StorageConflict` if the log does not have the expected head. */
  append({ logId, expected, head, blocks }: AppendRequest): readonly StagedFrame[] {
    const before = this.headOf(logId)
    assertExpectedHead(logId, before, expected)
    const writeState = writeStateChange(before!.writeState, head.writeState)
    this.#heads.set(logId, { ...head, extensions: before!.extensions })
    const pieces = blocks.flatMap((block) => splitBlock(block, BLOCK_DATA_BYTES))
    return pieces.map((block, index): StagedFrame => {
      const change = { kind: 'block', log: logId, block } as const
      const isLast = index === pieces.length - 1
      return { changes: [isLast ? { ...change, head, writeState } : change], data: block.data }
    })
  }

  /** Throws `StorageConflict` if an expectation does not hold. */
  commit(requests: readonly SerializedChange[]): readonly StagedFrame[] {
    const { documents, logs } = planCommit(requests, this, this)
    for (const { collection, key, content } of documents) {
      this.#versions.set(nameOf(collection, key), content?.version ?? null)
    }
    for (const { logId, head = null } of logs) this.#heads.set(logId, head)
    const changes = [
      ...documents.map(({ collection, key, content = null }) => {
        return { kind: 'document', collection, key, content } as const
      }),
      ...logs.map(({ logId, head = null }) => ({ kind: 'head', log: logId, head }) as const),
    ]
    return changes.length === 0 ? [] : [{ changes }]
  }

  versionOf(collection: Collection, key: string): number | undefined {
    const staged = this.#versions.get(nameOf(collection, key))
    if (staged !== undefined) return staged ?? undefined
    return this.#state.documents(collection).get(key)?.version
  }

  headOf(logId: string): Head | undefined {
    const staged = this.#heads.get(logId)
    return staged === undefined ? this.#state.logs.get(logId)?.head : (staged ?? undefined)
  }

  nextVersion(): number {
    return this.#state.nextVersion++
  }
}

/** Unique, because names of collections do not contain U+0000. */
function nameOf(collection: Collection, key: string): string {
  return `${collection}\0${key}`
}
