import type {
  AppendRequest,
  CatalogChange,
  Collection,
  Document,
  Head,
  ListRange,
  ReadRange,
  Reclaimed,
  ReclaimLimits,
  StorageSession,
  StoredBlock,
} from '../../../src/storage/contract.ts'
import { StorageFailure } from '../../../src/storage/errors.ts'
import type { Committer } from './committer.ts'
import type { Handles } from './handles.ts'
import type { Journals } from './journals.ts'
import type { LogReader } from './log-reader.ts'
import type { Maintenance } from './maintenance.ts'
import type { Reclaimer } from './reclaimer.ts'
import type { CatalogRequest } from './stage.ts'
import type { State } from './state.ts'
import type { Turns } from './turns.ts'

/** What an append or a change takes in the journal beside its data and texts, about. */
const OVERHEAD_BYTES = 160

export interface SessionParts {
  readonly state: State
  readonly journals: Journals
  readonly handles: Handles
  readonly committer: Committer
  readonly maintenance: Maintenance
  readonly reader: LogReader
  readonly reclaimer: Reclaimer
  readonly turns: Turns
  /** Gives the directory up. */
  readonly release: () => Promise<void>
}

/** The open directory. */
export class FilesystemSession implements StorageSession {
  readonly #parts: SessionParts
  readonly #inFlight = new Set<Promise<unknown>>()
  #closing: Promise<void> | undefined

  constructor(parts: SessionParts) {
    this.#parts = parts
  }

  async get(collection: Collection, key: string): Promise<Document | undefined> {
    return this.#open().state.catalog.get(collection, key)
  }

  async list(collection: Collection, range: ListRange): Promise<Document[]> {
    return this.#open().state.catalog.list(collection, range)
  }

  async commit(changes: readonly CatalogChange[]): Promise<void> {
    const { committer } = this.#open()
    const requests = changes.map(requestOf)
    return this.#track(committer.commit(bytesOf(requests), (stage) => stage.commit(requests)))
  }

  async head(logId: string): Promise<Head | undefined> {
    const head = this.#open().state.logsById.get(logId)?.head
    return head && copyHead(head)
  }

  async append(request: AppendRequest): Promise<void> {
    const bytes = request.block.data.length + OVERHEAD_BYTES
    return this.#track(this.#open().committer.commit(bytes, (stage) => [stage.append(request)]))
  }

  async read(logId: string, range: ReadRange): Promise<StoredBlock[]> {
    const { state, reader } = this.#open()
    const log = state.logsById.get(logId)
    return log === undefined ? [] : this.#track(reader.read(log, range))
  }

  async reclaim(limits: ReclaimLimits): Promise<Reclaimed> {
    const { turns, reclaimer, maintenance } = this.#open()
    const failure = maintenance.takeFailure()
    if (failure !== undefined) throw failure
    return this.#track(turns.take(() => reclaimer.reclaim(limits)))
  }

  async measure(logIds: readonly string[]): Promise<number[]> {
    const { state } = this.#open()
    return logIds.map((logId) => state.logsById.get(logId)?.meteredBytes ?? 0)
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  /** Goes through all of it, whatever fails on the way, and then rejects with the first failure. */
  async #close(): Promise<void> {
    const { committer, maintenance, journals, handles, release } = this.#parts
    const steps = [
      () => Promise.allSettled(this.#inFlight),
      () => maintenance.close(),
      // Without it, the next opening takes the last group for one that may not be durable: right, only slower.
      () => journals.isWritten && committer.commit(0, () => [{ kind: 'closed' }]).catch(() => {}),
      () => committer.idle(),
      () => journals.close(),
      () => handles.close(),
      release,
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

  #track<Result>(call: Promise<Result>): Promise<Result> {
    this.#inFlight.add(call)
    const forget = (): void => void this.#inFlight.delete(call)
    call.then(forget, forget)
    return call
  }

  #open(): SessionParts {
    if (this.#closing === undefined) return this.#parts
    throw new StorageFailure('closed', 'the storage is closed', { nothingWritten: true })
  }
}

function requestOf(change: CatalogChange): CatalogRequest {
  if (change.kind !== 'put') return { ...change }
  const { kind, collection, key, value, expect } = change
  return { kind, collection, key, text: JSON.stringify(value), expect }
}

function bytesOf(requests: readonly CatalogRequest[]): number {
  return requests.reduce(
    (bytes, request) => bytes + OVERHEAD_BYTES + (request.kind === 'put' ? request.text.length : 0),
    0,
  )
}

function copyHead(head: Head): Head {
  return { ...head, tail: { ...head.tail }, trims: head.trims.map((trim) => ({ ...trim })) }
}
