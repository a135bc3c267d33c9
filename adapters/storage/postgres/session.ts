import { idFrom, secureRandom } from '../../../src/runtime/ids.ts'
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
  StorageContext,
  StorageSession,
  StoredBlock,
} from '../../../src/storage/contract.ts'
import { SessionCalls } from '../../../src/storage/session-calls.ts'
import { StatementWriter } from './append-writer.ts'
import { BackgroundLease } from './background-lease.ts'
import { commitStatement, PostgresCatalog } from './catalog.ts'
import { NotificationChannel } from './change-channel.ts'
import type { Database } from './database.ts'
import { RowReader } from './log-reader.ts'
import { reclaimRows } from './reclaim.ts'
import type { Tables } from './schema.ts'
import type { ServerClock } from './server-clock.ts'

/** One engine's access to the tables. */
export class PostgresSession implements StorageSession {
  readonly #database: Database
  readonly #tables: Tables
  readonly #context: StorageContext
  readonly #serverClock: ServerClock | undefined
  /** Absent if the engine's clock is virtual. */
  readonly now?: NonNullable<StorageSession['now']>
  readonly #catalog: PostgresCatalog
  readonly #reader: RowReader
  readonly #writer: StatementWriter
  readonly #changes: NotificationChannel | undefined
  readonly #leases = new Set<BackgroundLease>()
  readonly #calls = new SessionCalls()

  /**
   * `serverClock` is undefined if the engine's clock is virtual. `channel` is the name of the channel for
   * notifications; undefined without.
   */
  constructor(
    database: Database,
    tables: Tables,
    context: StorageContext,
    serverClock: ServerClock | undefined,
    channel: string | undefined,
  ) {
    this.#database = database
    this.#tables = tables
    this.#context = context
    this.#serverClock = serverClock
    if (serverClock !== undefined) this.now = () => this.#calls.run(() => serverClock.now())
    this.#catalog = new PostgresCatalog(database, tables)
    this.#reader = new RowReader(database, tables)
    this.#writer = new StatementWriter(database, tables, (logId) => this.#changes?.announce([logId]))
    if (channel === undefined) return
    this.#changes = new NotificationChannel(channel, database, context.clock, (logId) => {
      if (!this.#calls.isClosed) context.onLogChanged(logId)
    })
  }

  /** Resolves when changes of other sessions are reported, if they can be. */
  async listen(): Promise<void> {
    await this.#changes?.open()
  }

  get(collection: Collection, key: string): Promise<Document | undefined> {
    return this.#calls.run(() => this.#catalog.get(collection, key))
  }

  list(collection: Collection, range: ListRange): Promise<Document[]> {
    return this.#calls.run(() => this.#catalog.list(collection, range))
  }

  commit(changes: readonly CatalogChange[]): Promise<void> {
    return this.#calls.run(async () => {
      await commitStatement(
        this.#database,
        this.#tables,
        changes,
        this.#context.clock.now() + this.clockOffsetMs(),
      )
      this.#changes?.announce(changes.flatMap((change) => ('logId' in change ? [change.logId] : [])))
    })
  }

  head(logId: string, known?: HeadIdentity): Promise<Head | undefined> {
    return this.#calls.run(() => this.#reader.head(logId, known))
  }

  append(request: AppendRequest): Promise<void> {
    return this.#calls.run(() => this.#writer.append(request))
  }

  read(logId: string, range: ReadRange): Promise<StoredBlock[]> {
    return this.#calls.run(() => this.#reader.read(logId, range))
  }

  reclaim(limits: ReclaimLimits): Promise<Reclaimed> {
    return this.#calls.run(() => reclaimRows(this.#database, this.#tables, limits))
  }

  measure(logIds: readonly string[]): Promise<number[]> {
    return this.#calls.run(() => this.#reader.measure(logIds))
  }

  clockOffsetMs(): number {
    return this.#serverClock?.offsetMs ?? 0
  }

  electForBackgroundWork(onElected: (isElected: boolean) => void): () => void {
    if (this.#calls.isClosed) return () => {}
    const { clock } = this.#context
    const holder = idFrom(secureRandom)
    const lease = new BackgroundLease(
      this.#database,
      this.#tables,
      clock,
      this.#serverClock,
      holder,
      onElected,
    )
    this.#leases.add(lease)
    return () => void this.#calls.run(() => lease.end()).catch(() => {})
  }

  close(): Promise<void> {
    return this.#calls.close(() => this.#release())
  }

  async #release(): Promise<void> {
    this.#database.stopRetrying()
    for (const lease of this.#leases) await lease.end()
    await this.#changes?.close()
    await this.#database.close()
  }
}
