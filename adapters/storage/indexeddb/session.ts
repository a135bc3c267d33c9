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
import { contendForBackgroundLock } from './background-lock.ts'
import { ChangeChannel } from './change-channel.ts'
import { commit } from './commit.ts'
import { Connection } from './connection.ts'
import { getDocument, listDocuments } from './documents.ts'
import { storageClosed } from './failures.ts'
import { measureLogs, readHead, readLogRange } from './log-reader.ts'
import { reclaim } from './reclaim.ts'
import { isQuotaFailure, Reserve } from './reserve.ts'
import type { SpaceMonitor } from './space.ts'
import type { Durability } from './transactions.ts'

export interface DatabaseOptions {
  readonly name: string
  readonly durability: Durability
  readonly space: SpaceMonitor
}

/** One engine's access to a database. */
export class IndexedDbSession implements StorageSession {
  readonly #name: string
  readonly #durability: Durability
  readonly #space: SpaceMonitor
  readonly #connection: Connection
  readonly #reserve: Reserve
  readonly #writer: AppendWriter
  readonly #changes: ChangeChannel
  readonly #runningCalls = new Set<Promise<unknown>>()
  readonly #withdrawals = new Set<() => void>()
  #closing: Promise<void> | undefined

  private constructor(database: DatabaseOptions, context: StorageContext, connection: Connection) {
    const { name, durability, space } = database
    this.#name = name
    this.#durability = durability
    this.#space = space
    this.#connection = connection
    this.#reserve = new Reserve(connection)
    this.#writer = new AppendWriter(connection, this.#reserve, durability, (requests) => {
      this.#changes.announce(requests.map(({ logId }) => logId))
      space.recordWritten(requests.reduce((sum, { block }) => sum + block.data.length, 0))
    })
    this.#changes = new ChangeChannel(name, context.clock, (logId) => {
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
    return this.#call(() => listDocuments(this.#connection, collection, range))
  }

  commit(changes: readonly CatalogChange[]): Promise<void> {
    return this.#call(async () => {
      const work = () => commit(this.#connection, this.#durability, changes)
      const freesSpace = changes.some(({ kind }) => kind === 'delete' || kind === 'delete-log')
      await (freesSpace ? this.#reserve.use(work) : work())
      this.#changes.announce(changes.flatMap((change) => ('logId' in change ? [change.logId] : [])))
    })
  }

  head(logId: string): Promise<Head | undefined> {
    return this.#call(() => readHead(this.#connection, logId))
  }

  append(request: AppendRequest): Promise<void> {
    return this.#call(() => this.#writer.append(request))
  }

  read(logId: string, range: ReadRange): Promise<StoredBlock[]> {
    return this.#call(() => readLogRange(this.#connection, logId, range))
  }

  reclaim(limits: ReclaimLimits): Promise<Reclaimed> {
    return this.#call(async () => {
      const reclaimed = await this.#reserve.use(() => reclaim(this.#connection, limits))
      if (this.#reserve.isSpent) await this.#reserve.restore()
      return reclaimed
    })
  }

  measure(logIds: readonly string[]): Promise<number[]> {
    return this.#call(() => measureLogs(this.#connection, logIds))
  }

  isFull(): boolean {
    return this.#reserve.isSpent
  }

  electForBackgroundWork(onElected: (isElected: boolean) => void): () => void {
    if (this.#closing !== undefined) return () => {}
    const end = contendForBackgroundLock(this.#name, onElected)
    const withdraw = () => {
      if (this.#withdrawals.delete(withdraw)) end()
    }
    this.#withdrawals.add(withdraw)
    return withdraw
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    for (const withdraw of this.#withdrawals) withdraw()
    await Promise.allSettled(this.#runningCalls)
    this.#changes.close()
    await this.#connection.close()
  }

  #call<Result>(work: () => Promise<Result>): Promise<Result> {
    if (this.#closing !== undefined) return Promise.reject(storageClosed())
    const call = work()
    const done = () => this.#runningCalls.delete(call)
    this.#runningCalls.add(call)
    call.then(done, (error) => {
      done()
      if (isQuotaFailure(error)) this.#space.recordFull()
    })
    return call
  }
}
