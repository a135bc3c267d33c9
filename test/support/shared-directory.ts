import type {
  AppendRequest,
  CatalogChange,
  Collection,
  ListRange,
  ReadRange,
  ReclaimLimits,
  Storage,
  StorageContext,
  StorageManifest,
  StorageSession,
} from '../../src/storage/contract.ts'
import { StorageFailure } from '../../src/storage/errors.ts'

/**
 * Shares an exclusive storage between the engines of this process. The first session opens it and the last
 * one closes it, so that tests with several engines, and with restarts, run on directories too.
 */
export class SharedDirectory implements Storage {
  readonly manifest: StorageManifest
  /** The number of pending calls. */
  calls = 0
  /** Called when the last pending call has ended. */
  onIdle: () => void = () => {}
  readonly #storage: Storage
  readonly #sessions = new Set<SharedSession>()
  #opening: Promise<StorageSession> | undefined
  #closing: Promise<void> = Promise.resolve()

  constructor(storage: Storage) {
    this.#storage = storage
    this.manifest = { ...storage.manifest, shared: true, notifications: 'reliable' }
  }

  async open(context: StorageContext): Promise<StorageSession> {
    return this.track(async () => {
      await this.#closing
      this.#opening ??= this.#storage.open({ ...context, onLogChanged: () => {} })
      const session = new SharedSession(this, await this.#opening, context.onLogChanged)
      this.#sessions.add(session)
      return session
    })
  }

  /** Closes the sessions of engines that their tests left open. */
  async close(): Promise<void> {
    for (const session of this.#sessions) await this.leave(session)
    await this.#closing
  }

  async leave(session: SharedSession): Promise<void> {
    if (!this.#sessions.delete(session) || this.#sessions.size > 0) return
    const opening = this.#opening
    this.#opening = undefined
    this.#closing = opening!.then((last) => last.close())
    await this.#closing
  }

  notifyOthers(sender: SharedSession, changes: readonly object[]): void {
    for (const change of changes) {
      if (!('logId' in change)) continue
      for (const session of this.#sessions) {
        if (session !== sender) session.logChanged(change.logId as string)
      }
    }
  }

  async track<Result>(call: () => Promise<Result>): Promise<Result> {
    this.calls++
    try {
      return await call()
    } finally {
      if (--this.calls === 0) this.onIdle()
    }
  }
}

class SharedSession implements StorageSession {
  readonly #directory: SharedDirectory
  readonly #session: StorageSession
  readonly #onLogChanged: (logId: string) => void
  #isClosed = false

  constructor(directory: SharedDirectory, session: StorageSession, onLogChanged: (logId: string) => void) {
    this.#directory = directory
    this.#session = session
    this.#onLogChanged = onLogChanged
  }

  get(collection: Collection, key: string) {
    return this.#call((session) => session.get(collection, key))
  }

  list(collection: Collection, range: ListRange) {
    return this.#call((session) => session.list(collection, range))
  }

  async commit(changes: readonly CatalogChange[]) {
    await this.#call((session) => session.commit(changes))
    this.#directory.notifyOthers(this, changes)
  }

  head(logId: string) {
    return this.#call((session) => session.head(logId))
  }

  async append(request: AppendRequest) {
    await this.#call((session) => session.append(request))
    this.#directory.notifyOthers(this, [request])
  }

  read(logId: string, range: ReadRange) {
    return this.#call((session) => session.read(logId, range))
  }

  reclaim(limits: ReclaimLimits) {
    return this.#call((session) => session.reclaim(limits))
  }

  measure(logIds: readonly string[]) {
    return this.#call((session) => session.measure(logIds))
  }

  close() {
    this.#isClosed = true
    return this.#directory.track(() => this.#directory.leave(this))
  }

  logChanged(logId: string): void {
    queueMicrotask(() => {
      if (!this.#isClosed) this.#onLogChanged(logId)
    })
  }

  async #call<Result>(call: (session: StorageSession) => Promise<Result>): Promise<Result> {
    if (this.#isClosed) throw new StorageFailure('closed', 'the storage is closed', { nothingWritten: true })
    return this.#directory.track(() => call(this.#session))
  }
}
