import type { SerialQueue } from '../../../src/runtime/serial-queue.ts'
import { ChangeNotifier } from '../../../src/storage/change-notifier.ts'
import { type SerializedChange, serializeChanges } from '../../../src/storage/commit-plan.ts'
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
import { storageClosed } from '../../../src/storage/errors.ts'
import { copyHead, hasNewTrim } from '../../../src/storage/heads.ts'
import { SessionCalls } from '../../../src/storage/session-calls.ts'
import { isFullError } from './files/errors.ts'
import type { Reserve } from './files/reserve.ts'
import type { Committer } from './journal/committer.ts'
import { Stage } from './journal/stage.ts'
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
  readonly #notifier: ChangeNotifier
  readonly #calls = new SessionCalls()
  #isExclusive = true
  #onElected: ((isElected: boolean) => void) | undefined

  constructor(storage: SessionStorage, onLogChanged: (logId: string) => void) {
    this.#storage = storage
    this.#notifier = new ChangeNotifier(onLogChanged)
  }

  async get(collection: Collection, key: string): Promise<Document | undefined> {
    return this.#calls.run(() => this.#open().state.catalog.get(collection, key))
  }

  async list(collection: Collection, range: ListRange): Promise<Document[]> {
    return this.#calls.run(() => this.#open().state.catalog.list(collection, range))
  }

  async commit(changes: readonly CatalogChange[]): Promise<void> {
    const { committer, state } = this.#open()
    const requests = serializeChanges(changes)
    const logIds = requests.flatMap((request) => ('logId' in request ? [request.logId] : []))
    return this.#track(
      committer.commit(
        bytesOf(requests),
        (stage) => stage.commit(requests),
        !requests.some(addsData),
        () => Stage.prepareCommit(state, requests),
      ),
      logIds,
    )
  }

  async head(logId: string): Promise<Head | undefined> {
    const { logs } = this.#open().state
    const head = (await this.#calls.run(() => logs.load(logId)))?.head
    return head && copyHead(head)
  }

  async append(request: AppendRequest): Promise<void> {
    const bytes = request.block.data.length + OVERHEAD_BYTES
    const { committer, state } = this.#open()
    const isTrim = hasNewTrim(request.head) && bytes <= TRIM_BYTES_MAX
    return this.#track(
      committer.commit(
        bytes,
        (stage) => [stage.append(request)],
        isTrim,
        () => Stage.prepareAppend(state, request),
      ),
      [request.logId],
    )
  }

  async read(logId: string, range: ReadRange): Promise<StoredBlock[]> {
    const { state, reader } = this.#open()
    return this.#calls.run(async () => {
      const log = await state.logs.load(logId)
      return log === undefined ? [] : reader.read(log, range)
    })
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
    return this.#calls.run(() =>
      Promise.all(logIds.map(async (logId) => (await state.logs.load(logId))?.meteredBytes ?? 0)),
    )
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
    this.#notifier.clear()
    return this.#calls.close(() => this.#storage.leave(this))
  }

  async check(): Promise<void> {
    const { committer, maintenance } = this.#open()
    committer.assertWritable()
    const refusal = maintenance.refusal()
    if (refusal !== undefined) throw refusal
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

  logChanged(logId: string): void {
    if (!this.#calls.isClosed) this.#notifier.notify(logId)
  }

  /** Resolves when no call is in flight. */
  idle(): Promise<void> {
    return this.#calls.settled()
  }

  /** Tells the other sessions of a change once it is durable. */
  #track<Result>(call: Promise<Result>, changed: readonly string[] = []): Promise<Result> {
    call.then(
      () => {
        for (const logId of changed) this.#storage.sessions.notifyOthers(this, logId)
      },
      () => {},
    )
    return this.#calls.run(() => call)
  }

  #open(): SessionStorage {
    if (this.#calls.isClosed || this.#storage.isClosed) throw storageClosed()
    return this.#storage
  }
}

/** Whether a change creates something. Usage is written all the time, so it would use up the reserve. */
function addsData(request: SerializedChange): boolean {
  if (request.kind !== 'put') return request.kind === 'create-log'
  return request.expect === null || request.collection === 'usage'
}

function bytesOf(requests: readonly SerializedChange[]): number {
  return requests.reduce(
    (bytes, request) => bytes + OVERHEAD_BYTES + (request.kind === 'put' ? request.text.length : 0),
    0,
  )
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
