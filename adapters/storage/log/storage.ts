import { appendedBytes } from '../../../src/storage/block-sizes.ts'
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
  StorageContext,
  StorageSession,
  StoredBlock,
} from '../../../src/storage/contract.ts'
import { StorageFailure, storageClosed } from '../../../src/storage/errors.ts'
import { hasNewTrim } from '../../../src/storage/heads.ts'
import { ChangeNotifier, SessionCalls } from '../../../src/storage/session-calls.ts'
import type { Medium } from '../media/medium.ts'
import type { StoredDocument } from './changes.ts'
import type { Stage } from './committer.ts'
import type { StagedFrame } from './journal.ts'
import type { WriteKind } from './space.ts'
import { type LogStorageOptions, LogStore } from './store.ts'

/** Estimated length of an append or a catalog change in the journal, beside its data and texts. */
const OVERHEAD_BYTES = 160
/** Batches with a trim that are larger than this carry other records, and may not use the reserve. */
const TRIM_BYTES_MAX = 4096

/** A larger commit of documents is refused. */
const COMMIT_BYTES_MAX = 64 * 1_048_576

/** An open storage. Each engine that shares it has a session of its own. */
export class LogStorage {
  readonly #store: LogStore
  readonly #release: () => Promise<void>
  /** Those that are open. */
  readonly sessions = new Set<LogSession>()
  #closing: Promise<void> | undefined

  private constructor(store: LogStore, release: () => Promise<void>) {
    this.#store = store
    this.#release = release
  }

  /** Opens it on a medium that nothing else may have open. Calls `release` once it is closed. */
  static async open(
    medium: Medium,
    options: LogStorageOptions,
    release: () => Promise<void>,
  ): Promise<LogStorage> {
    let storage: LogStorage | undefined
    const report = (error: unknown) => [...(storage?.sessions ?? [])].some((session) => session.report(error))
    storage = new LogStorage(await LogStore.open(medium, options, report), release)
    return storage
  }

  /** Returns undefined if the storage is closing, or if nothing more can be written before it is reopened. */
  join(context: Pick<StorageContext, 'onLogChanged' | 'onBackgroundError'>): LogSession | undefined {
    if (this.#closing !== undefined || !this.#store.isUsable) return undefined
    const session = new LogSession(this, this.#store, context)
    this.sessions.add(session)
    if (this.sessions.size > 1) for (const one of this.sessions) one.markShared()
    return session
  }

  /** Waits for the calls in flight. Later calls of all sessions reject. */
  close(): Promise<void> {
    this.#closing ??= Promise.all([...this.sessions].map((session) => session.end()))
      .then(() => this.#store.close())
      .finally(this.#release)
    return this.#closing
  }

  async leave(session: LogSession): Promise<void> {
    this.sessions.delete(session)
    if (this.sessions.size === 0) await this.close()
  }
}

/** One engine's access to an open storage. */
export class LogSession implements StorageSession {
  readonly #storage: LogStorage
  readonly #store: LogStore
  readonly #notifier: ChangeNotifier
  readonly #calls = new SessionCalls()
  readonly #onBackgroundError: ((error: unknown) => void) | undefined
  #isExclusive = true
  #isEnded = false

  constructor(
    storage: LogStorage,
    store: LogStore,
    { onLogChanged, onBackgroundError }: Pick<StorageContext, 'onLogChanged' | 'onBackgroundError'>,
  ) {
    this.#storage = storage
    this.#store = store
    this.#notifier = new ChangeNotifier(onLogChanged)
    this.#onBackgroundError = onBackgroundError
  }

  async get(collection: Collection, key: string): Promise<Document | undefined> {
    const found = this.#open().state.documents(collection).get(key)
    return found && documentOf(key, found)
  }

  async list(collection: Collection, range: ListRange): Promise<Document[]> {
    const found = this.#open().state.documents(collection).list(range)
    return found.map(([key, document]) => documentOf(key, document))
  }

  async commit(changes: readonly CatalogChange[]): Promise<void> {
    this.#open()
    const requests = serializeChanges(changes)
    const logIds = requests.flatMap((request) => ('logId' in request ? [request.logId] : []))
    const bytes = bytesOf(requests)
    if (bytes > COMMIT_BYTES_MAX) {
      const message = `a commit has ${bytes} bytes; the limit is ${COMMIT_BYTES_MAX}`
      throw new StorageFailure('io', message, { nothingWritten: true })
    }
    const kind = requests.some(addsData) ? 'adds' : 'frees'
    return this.#commit(kind, bytes, (stage) => stage.commit(requests), logIds)
  }

  async head(logId: string): Promise<Head | undefined> {
    return this.#open().state.logs.get(logId)?.head
  }

  async append(request: AppendRequest): Promise<void> {
    const { head, logId } = request
    const bytes = appendedBytes(request) + OVERHEAD_BYTES
    const kind = hasNewTrim(head) && bytes <= TRIM_BYTES_MAX ? 'frees' : 'adds'
    return this.#commit(kind, bytes, (stage) => stage.append(request), [logId])
  }

  async read(logId: string, range: ReadRange): Promise<StoredBlock[]> {
    const { reader } = this.#open()
    return this.#calls.run(() => reader.read(logId, range))
  }

  async reclaim(limits: ReclaimLimits): Promise<Reclaimed> {
    const store = this.#open()
    return this.#calls.run(() => store.reclaim(limits))
  }

  async measure(logIds: readonly string[]): Promise<number[]> {
    const { logs } = this.#open().state
    return logIds.map((logId) => logs.get(logId)?.meteredBytes ?? 0)
  }

  close(): Promise<void> {
    this.#notifier.clear()
    return this.#calls.close(() => this.#storage.leave(this))
  }

  async check(): Promise<void> {
    this.#open().assertWritable()
  }

  isFull(): boolean {
    return this.#open().space.isFull
  }

  isExclusive(): boolean {
    return this.#isExclusive
  }

  /** Called once another session is open. */
  markShared(): void {
    this.#isExclusive = false
  }

  logChanged(logId: string): void {
    if (!this.#calls.isClosed) this.#notifier.notify(logId)
  }

  /** Passes on an error that belongs to no call. Returns whether anything receives it. */
  report(error: unknown): boolean {
    this.#onBackgroundError?.(error)
    return this.#onBackgroundError !== undefined
  }

  /** Rejects later calls. Resolves when no call is in flight. */
  async end(): Promise<void> {
    this.#isEnded = true
    await this.#calls.settled()
  }

  /** Writes a call, and tells the other sessions once it is durable. */
  #commit(
    kind: WriteKind,
    bytes: number,
    stage: (stage: Stage) => readonly StagedFrame[],
    changed: readonly string[],
  ): Promise<void> {
    const call = this.#open().committer.commit(kind, bytes, stage)
    const notify = () => {
      if (this.#isExclusive) return
      for (const other of this.#storage.sessions) {
        if (other !== this) for (const logId of changed) other.logChanged(logId)
      }
    }
    call.then(notify, () => {})
    return this.#calls.run(() => call)
  }

  #open(): LogStore {
    if (this.#calls.isClosed || this.#isEnded) throw storageClosed()
    return this.#store
  }
}

function documentOf(key: string, { text, version }: StoredDocument): Document {
  return { key, value: JSON.parse(text), version }
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
