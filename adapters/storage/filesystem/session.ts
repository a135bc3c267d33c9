import type { SerialQueue } from '../../../src/runtime/serial-queue.ts'
import {
  type AppendRequest,
  type CatalogChange,
  type Collection,
  type Document,
  type Head,
  hasNewTrim,
  type ListRange,
  type ReadRange,
  type Reclaimed,
  type ReclaimLimits,
  type StorageSession,
  type StoredBlock,
} from '../../../src/storage/contract.ts'
import { StorageFailure } from '../../../src/storage/errors.ts'
import { isFullError } from './files/errors.ts'
import type { Reserve } from './files/reserve.ts'
import type { Committer } from './journal/committer.ts'
import type { CatalogRequest } from './journal/stage.ts'
import type { LogReader } from './log-reader.ts'
import type { Maintenance } from './maintenance/maintenance.ts'
import type { Reclaimer } from './maintenance/reclaimer.ts'
import type { State } from './state/state.ts'

/** Estimated length of an append or a catalog change in the journal, beside its data and texts. */
const OVERHEAD_BYTES = 160
/** Batches with a trim that are larger than this carry other records, and may not use the reserve. */
const TRIM_BYTES_MAX = 4096

/** The open storage, as a session uses it. */
export interface SessionStorage {
  readonly state: State
  readonly committer: Committer
  readonly maintenance: Maintenance
  readonly reader: LogReader
  readonly reclaimer: Reclaimer
  readonly rollQueue: SerialQueue
  readonly reserve: Reserve
  readonly sessions: Sessions
  readonly isClosed: boolean
  /** Ends a session that accepts no more calls. */
  leave(session: FilesystemSession): Promise<void>
}

/** One engine's access to an open directory. */
export class FilesystemSession implements StorageSession {
  readonly #storage: SessionStorage
  readonly #onLogChanged: (logId: string) => void
  readonly #inFlight = new Set<Promise<unknown>>()
  /** Logs with a pending notification. */
  readonly #changed = new Set<string>()
  #isExclusive = true
  #onElected: ((isElected: boolean) => void) | undefined
  #closing: Promise<void> | undefined

  constructor(storage: SessionStorage, onLogChanged: (logId: string) => void) {
    this.#storage = storage
    this.#onLogChanged = onLogChanged
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
    const logIds = requests.flatMap((request) => ('logId' in request ? [request.logId] : []))
    return this.#track(
      committer.commit(bytesOf(requests), (stage) => stage.commit(requests), !requests.some(addsData)),
      logIds,
    )
  }

  async head(logId: string): Promise<Head | undefined> {
    const head = this.#open().state.logs.withId(logId)?.head
    return head && copyHead(head)
  }

  async append(request: AppendRequest): Promise<void> {
    const bytes = request.block.data.length + OVERHEAD_BYTES
    const { committer } = this.#open()
    const isTrim = hasNewTrim(request.head) && bytes <= TRIM_BYTES_MAX
    return this.#track(
      committer.commit(bytes, (stage) => [stage.append(request)], isTrim),
      [request.logId],
    )
  }

  async read(logId: string, range: ReadRange): Promise<StoredBlock[]> {
    const { state, reader } = this.#open()
    const log = state.logs.withId(logId)
    return log === undefined ? [] : this.#track(reader.read(log, range))
  }

  async reclaim(limits: ReclaimLimits): Promise<Reclaimed> {
    const { rollQueue, reclaimer, maintenance } = this.#open()
    const failure = maintenance.takeFailure()
    const isFull = isFullError(failure)
    if (failure !== undefined && !isFull) throw failure
    const reclaimed = await this.#track(rollQueue.run(() => reclaimer.reclaim(limits)))
    await maintenance.makeRoom()
    // Freeing records may end the cause.
    if (isFull && reclaimed.logIds.length === 0) throw failure
    return reclaimed
  }

  async measure(logIds: readonly string[]): Promise<number[]> {
    const { state } = this.#open()
    return logIds.map((logId) => state.logs.withId(logId)?.meteredBytes ?? 0)
  }

  electForBackgroundWork(onElected: (isElected: boolean) => void): () => void {
    const { sessions } = this.#open()
    this.#onElected = onElected
    sessions.elect()
    return () => {
      this.#onElected = undefined
      sessions.elect()
    }
  }

  close(): Promise<void> {
    this.#closing ??= this.#storage.leave(this)
    return this.#closing
  }

  async check(): Promise<void> {
    this.#open().committer.assertWritable()
  }

  isFull(): boolean {
    return this.#open().reserve.isFull
  }

  isExclusive(): boolean {
    return this.#isExclusive
  }

  /** Called once another session is open. */
  markShared(): void {
    this.#isExclusive = false
  }

  /** Whether it contends for the background work. */
  get isCandidate(): boolean {
    return this.#onElected !== undefined
  }

  setElected(isElected: boolean): void {
    this.#onElected?.(isElected)
  }

  /**
   * Schedules a notification, in a microtask of its own: a callback that throws must not suppress the others.
   */
  logChanged(logId: string): void {
    if (this.#changed.has(logId)) return
    this.#changed.add(logId)
    queueMicrotask(() => {
      if (this.#changed.delete(logId) && this.#closing === undefined) this.#onLogChanged(logId)
    })
  }

  /** Resolves when no call is in flight. */
  async idle(): Promise<void> {
    await Promise.allSettled(this.#inFlight)
  }

  /** Tells the other sessions of a change once it is durable. */
  #track<Result>(call: Promise<Result>, changed: readonly string[] = []): Promise<Result> {
    this.#inFlight.add(call)
    const forget = () => void this.#inFlight.delete(call)
    call.then(() => {
      forget()
      for (const logId of changed) this.#storage.sessions.notifyOthers(this, logId)
    }, forget)
    return call
  }

  #open(): SessionStorage {
    if (this.#closing === undefined && !this.#storage.isClosed) return this.#storage
    throw new StorageFailure('closed', 'the storage is closed', { nothingWritten: true })
  }
}

function requestOf(change: CatalogChange): CatalogRequest {
  if (change.kind !== 'put') return { ...change }
  const { kind, collection, key, value, expect } = change
  return { kind, collection, key, text: JSON.stringify(value), expect }
}

/** Whether a change creates something. Usage is written all the time, so it would use up the reserve. */
function addsData(request: CatalogRequest): boolean {
  if (request.kind !== 'put') return request.kind === 'create-log'
  return request.expect === null || request.collection === 'usage'
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

/**
 * The sessions of one storage, oldest first. They are held weakly: the engine of a reloaded module is never
 * closed, and a storage that stays open must not keep it in memory.
 */
export class Sessions {
  #sessions: WeakRef<FilesystemSession>[] = []
  #elected: WeakRef<FilesystemSession> | undefined

  get isEmpty(): boolean {
    return this.#alive().length === 0
  }

  add(session: FilesystemSession): void {
    const others = this.#alive()
    this.#sessions.push(new WeakRef(session))
    if (others.length > 0) for (const one of [...others, session]) one.markShared()
  }

  remove(session: FilesystemSession): void {
    this.#sessions = this.#sessions.filter((other) => other.deref() !== session)
    this.elect()
  }

  /** Tells the others that a log was changed by this session. */
  notifyOthers(session: FilesystemSession, logId: string): void {
    if (this.#sessions.length === 1) return
    for (const other of this.#alive()) if (other !== session) other.logChanged(logId)
  }

  /**
   * Gives the background work to the newest session: of the engines that reloads leave open, it is the one in
   * use, and the others hold no timers.
   */
  elect(): void {
    const next = this.#alive().findLast(({ isCandidate }) => isCandidate)
    const current = this.#elected?.deref()
    if (next === current) return
    this.#elected = next && new WeakRef(next)
    if (current?.isCandidate) current.setElected(false)
    next?.setElected(true)
  }

  async idle(): Promise<void> {
    await Promise.all(this.#alive().map((session) => session.idle()))
  }

  #alive(): FilesystemSession[] {
    const sessions = this.#sessions.flatMap((session) => session.deref() ?? [])
    if (sessions.length < this.#sessions.length) {
      this.#sessions = this.#sessions.filter((session) => session.deref() !== undefined)
    }
    return sessions
  }
}
