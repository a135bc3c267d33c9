import {
  type AppendRequest,
  type CatalogChange,
  type Collection,
  emptyHead,
  type Head,
  identityOf,
  isSameHead,
} from '../../../../src/storage/contract.ts'
import { StorageConflict } from '../../../../src/storage/errors.ts'
import type { Change } from '../state/change.ts'
import type { State } from '../state/state.ts'

interface StagedLog {
  readonly number: number
  readonly head: Head
}

/** A catalog change with its value serialized, because the caller may modify the value after the call. */
export type CatalogRequest =
  | Exclude<CatalogChange, { kind: 'put' }>
  | {
      readonly kind: 'put'
      readonly collection: Collection
      readonly key: string
      readonly text: string
      readonly expect: number | null | undefined
    }

/**
 * The state as it will be once the current group is durable. Only calls of this group see it. A call either
 * becomes changes, or throws `StorageConflict` and has no effect.
 */
export class Stage {
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

  begin(): void {
    this.#undo = []
  }

  rollback(): void {
    for (const undo of this.#undo.reverse()) undo()
    this.#undo = []
  }

  append({ logId, expected, block, head }: AppendRequest): Change {
    const log = this.#require(logId)
    if (!isSameHead(identityOf(log.head), expected)) {
      throw new StorageConflict(`log ${logId} does not have the expected head`)
    }
    this.#set(this.#logs, logId, { number: log.number, head })
    return { kind: 'append', log: log.number, block, head }
  }

  commit(requests: readonly CatalogRequest[]): Change[] {
    return requests.flatMap((request) => this.#commitOne(request) ?? [])
  }

  holdsLog(number: number): boolean {
    const log = this.#state.logs.withNumber(number)
    return log !== undefined && this.#log(log.id)?.number === number
  }

  #commitOne(request: CatalogRequest): Change | undefined {
    switch (request.kind) {
      case 'check':
        this.#check(request.collection, request.key, request.expect)
        return undefined
      case 'put': {
        const { kind, collection, key, text } = request
        this.#check(collection, key, request.expect)
        const version = this.#state.nextVersion++
        this.#set(this.#documents, documentId(collection, key), version)
        return { kind, collection, key, version, text }
      }
      case 'delete': {
        const { kind, collection, key } = request
        if (this.#check(collection, key, request.expect) === null) return undefined
        this.#set(this.#documents, documentId(collection, key), null)
        return { kind, collection, key }
      }
      case 'create-log': {
        const { kind, logId, epoch, createdAt, start } = request
        if (this.#log(logId)) throw new StorageConflict(`log ${logId} already exists`)
        const number = this.#state.nextLog++
        this.#set(this.#logs, logId, { number, head: emptyHead(epoch, createdAt, start) })
        return { kind, log: number, id: logId, epoch, createdAt, start }
      }
      case 'set-epoch': {
        const { kind, logId, epoch } = request
        const { number, head } = this.#require(logId)
        this.#set(this.#logs, logId, { number, head: { ...head, epoch } })
        return { kind, log: number, epoch }
      }
      case 'delete-log': {
        const { kind, logId, expectSeqNum } = request
        const log = this.#log(logId)
        if (!log) return undefined
        if (expectSeqNum !== undefined && log.head.tail.seqNum !== expectSeqNum) {
          throw new StorageConflict(`log ${logId} does not have the expected tail`)
        }
        this.#set(this.#logs, logId, null)
        return { kind, log: log.number }
      }
    }
  }

  #check(collection: Collection, key: string, expect: number | null | undefined): number | null {
    const staged = this.#documents.get(documentId(collection, key))
    const version = staged === undefined ? this.#state.catalog.versionOf(collection, key) : staged
    if (expect !== undefined && version !== expect) {
      throw new StorageConflict(
        `document ${JSON.stringify(key)} in ${collection} does not have the expected version`,
      )
    }
    return version
  }

  #log(logId: string): StagedLog | null | undefined {
    const staged = this.#logs.get(logId)
    return staged === undefined ? this.#state.logs.withId(logId) : staged
  }

  #require(logId: string): StagedLog {
    const log = this.#log(logId)
    if (!log) throw new StorageConflict(`log ${logId} does not exist`)
    return log
  }

  #set<Value>(map: Map<string, Value>, key: string, value: Value): void {
    const before = map.get(key)
    this.#undo.push(() => (before === undefined ? map.delete(key) : map.set(key, before)))
    map.set(key, value)
  }
}

function documentId(collection: Collection, key: string): string {
  return `${collection} ${key}`
}
