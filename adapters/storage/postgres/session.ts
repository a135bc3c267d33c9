import { idFrom, secureRandom } from '../../../src/runtime/ids.ts'
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
import { AppendWriter } from './append-writer.ts'
import { BackgroundLease } from './background-lease.ts'
import { Catalog } from './catalog.ts'
import { ChangeChannel } from './change-channel.ts'
import { commit } from './commit.ts'
import type { Database } from './database.ts'
import { storageClosed } from './failures.ts'
import { LogReader } from './log-reader.ts'
import { reclaim } from './reclaim.ts'
import type { Tables } from './schema.ts'

/** One engine's access to the tables. */
export class PostgresSession implements StorageSession {
  readonly #database: Database
  readonly #tables: Tables
  readonly #context: StorageContext
  readonly #catalog: Catalog
  readonly #reader: LogReader
  readonly #writer: AppendWriter
  readonly #changes: ChangeChannel | undefined
  readonly #leases = new Set<BackgroundLease>()
  readonly #calls = new Set<Promise<unknown>>()
  #closing: Promise<void> | undefined

  /** `channel` is the name of the channel for notifications; undefined without. */
  constructor(database: Database, tables: Tables, context: StorageContext, channel: string | undefined) {
    this.#database = database
    this.#tables = tables
    this.#context = context
    this.#catalog = new Catalog(database, tables)
    this.#reader = new LogReader(database, tables)
    this.#writer = new AppendWriter(database, tables, (logId) => this.#changes?.announce([logId]))
    if (channel === undefined) return
    this.#changes = new ChangeChannel(channel, database, context.clock, (logId) => {
      if (this.#closing === undefined) context.onLogChanged(logId)
    })
  }

  /** Resolves when changes of other sessions are reported, if they can be. */
  async listen(): Promise<void> {
    await this.#changes?.open()
  }

  get(collection: Collection, key: string): Promise<Document | undefined> {
    return this.#call(() => this.#catalog.get(collection, key))
  }

  list(collection: Collection, range: ListRange): Promise<Document[]> {
    return this.#call(() => this.#catalog.list(collection, range))
  }

  commit(changes: readonly CatalogChange[]): Promise<void> {
    return this.#call(async () => {
      await commit(this.#database, this.#tables, changes, this.#context.clock.now())
      this.#changes?.announce(changes.flatMap((change) => ('logId' in change ? [change.logId] : [])))
    })
  }

  head(logId: string): Promise<Head | undefined> {
    return this.#call(() => this.#reader.head(logId))
  }

  append(request: AppendRequest): Promise<void> {
    return this.#call(() => this.#writer.append(request))
  }

  allocate(logId: string, bytes: number): Uint8Array {
    return this.#writer.allocate(logId, bytes)
  }

  read(logId: string, range: ReadRange): Promise<StoredBlock[]> {
    return this.#call(() => this.#reader.read(logId, range))
  }

  reclaim(limits: ReclaimLimits): Promise<Reclaimed> {
    return this.#call(() => reclaim(this.#database, this.#tables, limits))
  }

  measure(logIds: readonly string[]): Promise<number[]> {
    return this.#call(() => this.#reader.measure(logIds))
  }

  electForBackgroundWork(onElected: (isElected: boolean) => void): () => void {
    if (this.#closing !== undefined) return () => {}
    const { clock } = this.#context
    const holder = idFrom(secureRandom)
    const lease = new BackgroundLease(this.#database, this.#tables, clock, holder, onElected)
    this.#leases.add(lease)
    return () => void this.#call(() => lease.end()).catch(() => {})
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    await Promise.allSettled(this.#calls)
    this.#database.stopRetrying()
    for (const lease of this.#leases) await lease.end()
    await this.#changes?.close()
    await this.#database.close()
  }

  #call<Result>(work: () => Promise<Result>): Promise<Result> {
    if (this.#closing !== undefined) return Promise.reject(storageClosed())
    const call = work()
    this.#calls.add(call)
    const done = () => this.#calls.delete(call)
    call.then(done, done)
    return call
  }
}
