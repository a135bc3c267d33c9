import {
  type DocumentUpdate,
  type DocumentVersions,
  type LogHeads,
  type LogUpdate,
  planCommit,
  type SerializedChange,
} from '../../../../src/storage/commit-plan.ts'
import type { AppendRequest, Collection, Head, LogStart } from '../../../../src/storage/contract.ts'
import { assertExpectedHead, writeStateChange } from '../../../../src/storage/heads.ts'
import type { Change } from '../state/change.ts'
import type { State } from '../state/state.ts'

interface StagedLog {
  readonly number: number
  readonly head: Head
}

/**
 * The state as it will be once the current group is durable. Only calls of this group see it. A call either
 * becomes changes, or throws `StorageConflict` and has no effect.
 */
export class Stage implements DocumentVersions, LogHeads {
  readonly #state: State
  /** Null: deleted. */
  readonly #logs = new Map<string, StagedLog | null>()
  /** Versions by document; null: deleted. */
  readonly #documents = new Map<string, number | null>()
  /** Undoes the current call. */
  #undo: (() => void)[] = []

  constructor(state: State) {
    this.#state = state
  }

  /** Loads the log of an append. Undefined if it is in memory. */
  static prepareAppend({ logs }: State, { logId }: AppendRequest): Promise<void> | undefined {
    return logs.retainId(logId)
  }

  /** Loads what {@link commit} needs. Undefined if it is in memory. */
  static prepareCommit(
    { catalog, logs }: State,
    requests: readonly SerializedChange[],
  ): Promise<void> | undefined {
    const loading = requests.flatMap((request) => {
      const one =
        'logId' in request ? logs.retainId(request.logId) : catalog.retain(request.collection, request.key)
      return one ?? []
    })
    return loading.length === 0 ? undefined : Promise.all(loading).then(() => {})
  }

  begin(): void {
    this.#undo = []
  }

  rollback(): void {
    for (const undo of this.#undo.reverse()) undo()
    this.#undo = []
  }

  append({ logId, expected, block, head }: AppendRequest): Change {
    const log = this.#log(logId)
    assertExpectedHead(logId, log?.head, expected)
    const { number, head: before } = log!
    this.#set(this.#logs, logId, { number, head })
    const writeState = writeStateChange(before.writeState, head.writeState)
    return { kind: 'append', log: number, block, head, writeState }
  }

  commit(requests: readonly SerializedChange[]): Change[] {
    const { documents, logs } = planCommit(requests, this, this)
    return [
      ...documents.map((update) => this.#stageDocument(update)),
      ...logs.flatMap((update) => this.#stageLog(update)),
    ]
  }

  versionOf(collection: Collection, key: string): number | undefined {
    const staged = this.#documents.get(documentId(collection, key))
    return (staged === undefined ? this.#state.catalog.versionOf(collection, key) : staged) ?? undefined
  }

  headOf(logId: string): Head | undefined {
    return this.#log(logId)?.head
  }

  nextVersion(): number {
    return this.#state.nextVersion++
  }

  /** Whether the log exists and has this epoch, which changes together with its extensions. */
  holdsLog(number: number, epoch: number): boolean {
    const log = this.#state.logs.withNumber(number)
    const staged = log && this.#log(log.id)
    return staged?.number === number && staged.head.epoch === epoch
  }

  #stageDocument({ collection, key, content }: DocumentUpdate): Change {
    this.#set(this.#documents, documentId(collection, key), content?.version ?? null)
    return content === undefined
      ? { kind: 'delete', collection, key }
      : { kind: 'put', collection, key, version: content.version, text: content.text }
  }

  #stageLog({ logId, head, isNew }: LogUpdate): Change | readonly Change[] {
    if (head !== undefined && isNew) {
      const number = this.#state.nextLog++
      this.#set(this.#logs, logId, { number, head })
      const { epoch, appendedAt: createdAt } = head
      return { kind: 'create-log', log: number, id: logId, epoch, createdAt, start: startOf(head) }
    }
    const { number, head: before } = this.#log(logId)!
    this.#set(this.#logs, logId, head === undefined ? null : { number, head })
    if (head === undefined) return { kind: 'delete-log', log: number }
    const { epoch, extensions } = head
    const change: Change = { kind: 'set-epoch', log: number, epoch }
    if (extensions === undefined || extensions === before.extensions) return change
    return [change, { kind: 'extend', log: number, extensions }]
  }

  #log(logId: string): StagedLog | null | undefined {
    const staged = this.#logs.get(logId)
    return staged === undefined ? this.#state.logs.withId(logId) : staged
  }

  #set<Value>(map: Map<string, Value>, key: string, value: Value): void {
    const before = map.get(key)
    this.#undo.push(() => (before === undefined ? map.delete(key) : map.set(key, before)))
    map.set(key, value)
  }
}

/** Returns the start of a new log; undefined if it is 0. */
function startOf({ tail, fencingToken }: Head): LogStart | undefined {
  const isBeginning = tail.seqNum === 0 && tail.timestamp === 0 && fencingToken === ''
  return isBeginning ? undefined : { tail, fencingToken }
}

function documentId(collection: Collection, key: string): string {
  return `${collection} ${key}`
}
