import type {
  AppendRequest,
  CatalogChange,
  Collection,
  Document,
  Head,
  HeadIdentity,
  ListRange,
  ReadRange,
  Reclaimed,
  ReclaimLimits,
  StorageSession,
  StoredBlock,
} from '../../../src/storage/contract.ts'
import { SessionCalls } from '../../../src/storage/session-calls.ts'
import { PostgresCatalog } from './catalog.ts'
import type { ChangeChannel } from './change-channel.ts'
import type { Database, ServerClock } from './database.ts'
import { PostgresLogs } from './logs.ts'
import { reclaimRows } from './reclaim.ts'
import type { Tables } from './schema.ts'

/** One engine's access to the tables. */
export class PostgresSession implements StorageSession {
  readonly #database: Database
  readonly #tables: Tables
  readonly #serverClock: ServerClock | undefined
  readonly #changes: ChangeChannel | undefined
  readonly #catalog: PostgresCatalog
  readonly #logs: PostgresLogs
  readonly #calls = new SessionCalls()
  /** Absent if the engine's clock is virtual. */
  readonly now?: NonNullable<StorageSession['now']>
  /** Absent unless the session is read-only: every engine does the background work. */
  readonly electForBackgroundWork?: NonNullable<StorageSession['electForBackgroundWork']>

  constructor(
    database: Database,
    tables: Tables,
    serverClock: ServerClock | undefined,
    changes: ChangeChannel | undefined,
    isReadOnly: boolean,
  ) {
    this.#database = database
    this.#tables = tables
    this.#serverClock = serverClock
    this.#changes = changes
    this.#catalog = new PostgresCatalog(database, tables)
    this.#logs = new PostgresLogs(database, tables, (logId) => changes?.announce([logId]))
    if (isReadOnly) this.electForBackgroundWork = () => () => {}
    if (serverClock !== undefined) this.now = () => this.#calls.run(() => serverClock.now())
  }

  get(collection: Collection, key: string): Promise<Document | undefined> {
    return this.#calls.run(() => this.#catalog.get(collection, key))
  }

  list(collection: Collection, range: ListRange): Promise<Document[]> {
    return this.#calls.run(() => this.#catalog.list(collection, range))
  }

  commit(changes: readonly CatalogChange[]): Promise<void> {
    return this.#calls.run(async () => {
      await this.#catalog.commit(changes)
      this.#changes?.announce(changes.flatMap((change) => ('logId' in change ? [change.logId] : [])))
    })
  }

  head(logId: string, known?: HeadIdentity): Promise<Head | undefined> {
    return this.#calls.run(() => this.#logs.head(logId, known))
  }

  append(request: AppendRequest): Promise<void> {
    return this.#calls.run(() => this.#logs.append(request))
  }

  read(logId: string, range: ReadRange): Promise<StoredBlock[]> {
    return this.#calls.run(() => this.#logs.read(logId, range))
  }

  reclaim(limits: ReclaimLimits): Promise<Reclaimed> {
    return this.#calls.run(() => reclaimRows(this.#database, this.#tables, limits))
  }

  measure(logIds: readonly string[]): Promise<number[]> {
    return this.#calls.run(() => this.#logs.measure(logIds))
  }

  clockOffsetMs(): number {
    return this.#serverClock?.offsetMs ?? 0
  }

  close(): Promise<void> {
    // Otherwise calls in flight would be repeated for up to `retryMs` during an outage.
    this.#database.stopRetrying()
    return this.#calls.close(async () => {
      await this.#changes?.close()
      await this.#database.close()
    })
  }
}
