import type { Clock } from '../../../src/storage/clock.ts'
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
import { Announcements } from './announcements.ts'
import { AppendWriter } from './append-writer.ts'
import { Connection } from './connection.ts'
import { closed } from './failures.ts'
import { getDocument } from './get-document.ts'
import { loadRest } from './load-rest.ts'
import { LogReader } from './log-reader.ts'
import { isQuota, Reserve } from './reserve.ts'
import type { SpaceWatch } from './space-watch.ts'
import type { Durability } from './transactions.ts'

/** How long a session that closes waits for code that its calls need, in milliseconds. */
const CODE_MS_MAX = 5_000

export interface DatabaseOptions {
  readonly name: string
  readonly durability: Durability
  /** Told of what is written. */
  readonly space: SpaceWatch
}

/** One engine's access to a database. */
export class IndexedDbSession implements StorageSession {
  readonly #name: string
  readonly #durability: Durability
  readonly #space: SpaceWatch
  readonly #clock: Clock
  readonly #connection: Connection
  readonly #reserve: Reserve
  readonly #writer: AppendWriter
  readonly #reader: LogReader
  readonly #announcements: Announcements
  /** Calls that are under way. */
  readonly #calls = new Set<Promise<unknown>>()
  /** Aborts when nobody waits any more for code that has not come. */
  readonly #leaving = new AbortController()
  /** How to give up the turns that were asked for. */
  readonly #turns = new Set<() => void>()
  #closing: Promise<void> | undefined

  private constructor(database: DatabaseOptions, context: StorageContext, connection: Connection) {
    const { name, durability, space } = database
    this.#name = name
    this.#durability = durability
    this.#space = space
    this.#clock = context.clock
    this.#connection = connection
    this.#reserve = new Reserve(connection, this.#leaving.signal)
    this.#writer = new AppendWriter(
      connection,
      this.#reserve,
      durability,
      () => this.#rest(),
      (requests) => {
        this.#announcements.tell(requests.map(({ logId }) => logId))
        space.wrote(requests.reduce((sum, { block }) => sum + block.data.length, 0))
      },
    )
    this.#reader = new LogReader(connection)
    this.#announcements = new Announcements(name, context.clock, (logId) => {
      if (this.#closing === undefined) context.onLogChanged(logId)
    })
  }

  static async open(database: DatabaseOptions, context: StorageContext): Promise<IndexedDbSession> {
    const connection = new Connection(database.name, context.clock)
    await connection.open()
    const session = new IndexedDbSession(database, context, connection)
    void session.#call(() => session.#reserve.restore())
    return session
  }

  get(collection: Collection, key: string): Promise<Document | undefined> {
    return this.#call(() => getDocument(this.#connection, collection, key))
  }

  list(collection: Collection, range: ListRange): Promise<Document[]> {
    return this.#call(async () => (await this.#rest()).listDocuments(this.#connection, collection, range))
  }

  commit(changes: readonly CatalogChange[]): Promise<void> {
    return this.#call(async () => {
      const commit = async () => (await this.#rest()).commit(this.#connection, this.#durability, changes)
      const makesRoom = changes.some(({ kind }) => kind === 'delete' || kind === 'delete-log')
      await (makesRoom ? this.#reserve.use(commit) : commit())
      this.#announcements.tell(changes.flatMap((change) => ('logId' in change ? [change.logId] : [])))
    })
  }

  head(logId: string): Promise<Head | undefined> {
    return this.#call(() => this.#reader.head(logId))
  }

  append(request: AppendRequest): Promise<void> {
    return this.#call(() => this.#writer.append(request))
  }

  read(logId: string, range: ReadRange): Promise<StoredBlock[]> {
    return this.#call(() => this.#reader.read(logId, range))
  }

  reclaim(limits: ReclaimLimits): Promise<Reclaimed> {
    return this.#call(async () => {
      const { reclaim } = await this.#rest()
      const reclaimed = await this.#reserve.use(() => reclaim(this.#connection, limits))
      if (this.#reserve.isSpent) await this.#reserve.restore()
      return reclaimed
    })
  }

  measure(logIds: readonly string[]): Promise<number[]> {
    return this.#call(async () => (await this.#rest()).measureLogs(this.#connection, logIds))
  }

  backgroundTurn(onTurn: (isOurs: boolean) => void): () => void {
    if (this.#closing !== undefined) return () => {}
    let end: (() => void) | undefined
    const endOnce = () => {
      if (this.#turns.delete(endOnce)) end?.()
    }
    this.#rest().then(
      ({ takeTurns }) => {
        if (this.#turns.has(endOnce)) end = takeTurns(this.#name, onTurn)
      },
      // What it takes to free space cannot be had either, until it is asked for again.
      () => {
        if (this.#turns.has(endOnce)) onTurn(true)
      },
    )
    this.#turns.add(endOnce)
    return endOnce
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    for (const end of this.#turns) end()
    const cancel = this.#clock.schedule(CODE_MS_MAX, () => this.#leaving.abort(closed()))
    await Promise.allSettled(this.#calls)
    cancel()
    this.#announcements.close()
    await this.#connection.close()
  }

  #rest() {
    return loadRest(this.#leaving.signal)
  }

  #call<Result>(work: () => Promise<Result>): Promise<Result> {
    if (this.#closing !== undefined) return Promise.reject(closed())
    const call = work()
    const done = () => this.#calls.delete(call)
    this.#calls.add(call)
    call.then(done, (error) => {
      done()
      if (isQuota(error)) this.#space.full()
    })
    return call
  }
}
