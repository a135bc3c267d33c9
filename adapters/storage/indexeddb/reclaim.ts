import { unwrap } from 'idb'
import { extendedExpiry, reclaimablePoint } from '../../../src/core/retention.ts'
import type { BlockSummary } from '../../../src/storage/block-collector.ts'
import type { Reclaimed, ReclaimLimits } from '../../../src/storage/contract.ts'
import { StorageFailure } from '../../../src/storage/errors.ts'
import { choresUntil } from './chores.ts'
import { type DatabaseConnection, write } from './connection.ts'
import { corruptDatabase } from './failures.ts'
import { blocksMeteredBytes, type LogWrite, putPage, replaceLog, writeWithExactChores } from './log-write.ts'
import {
  encodePage,
  packPages,
  pagesEnding,
  partsOf,
  readBlocks,
  readSummaries,
  withExpiries,
} from './page.ts'
import type { Chore, ChoreKind, LogRow, PageKey, PageRow, WriteTransaction } from './schema.ts'
import { foldTailRows, readTailLog, type StoredLog } from './tail-rows.ts'

/** The most rows that one call reads, a few megabytes, so that appends do not wait long. */
const ROWS_MAX = 64

/** The most rows per request. */
const ROWS_PER_REQUEST = 16

/** A log with blocks to free. */
interface OpenLog {
  readonly logId: string
  readonly stored: StoredLog
  /** Whether the tail rows were folded into the row; false if any of them is damaged. */
  readonly isFolded: boolean
  readonly before: LogRow
  row: LogRow
}

type Condition = (block: BlockSummary) => boolean

/**
 * Frees trimmed and expired blocks and the pages of deleted logs. Uses `relaxed` durability, because work
 * lost to a power failure is simply repeated. Leaves damaged data as it is; once nothing else is left to
 * free, rejects with `StorageFailure` (`corrupt`).
 */
export async function reclaimPages(
  connection: DatabaseConnection,
  limits: ReclaimLimits,
): Promise<Reclaimed> {
  const { reclaimed, damage, isChanged } = await connection.run((db) =>
    write(db, ['logs', 'appends', 'pages', 'parts', 'chores'], 'relaxed', (transaction) =>
      new Reclaim(transaction, limits).run(),
    ),
  )
  if (damage === undefined) return reclaimed
  // Another call reports the damage, when it has nothing else to do.
  if (!isChanged) throw damage
  return { ...reclaimed, more: true }
}

interface Outcome {
  readonly reclaimed: Reclaimed
  /** The first damage found. */
  readonly damage: StorageFailure | undefined
  readonly isChanged: boolean
}

/** The store of pages, or one of its indexes. */
interface PageSource {
  getAll(range: IDBKeyRange, count: number): Promise<PageRow[]>
  getAllKeys(range: IDBKeyRange, count: number): Promise<PageKey[]>
}

/** One call to `reclaim`, in one transaction. */
class Reclaim {
  readonly #transaction: WriteTransaction
  /** The transaction for writes, which are not awaited. */
  readonly #raw: IDBTransaction
  readonly #limits: ReclaimLimits
  readonly #isExpired: Condition
  readonly #logs = new Map<string, OpenLog>()
  readonly #freedOf = new Set<string>()
  #blocksLeft: number
  #rowsLeft = ROWS_MAX
  readonly #damage = new DamageCollector()
  #isChanged = false

  constructor(transaction: WriteTransaction, limits: ReclaimLimits) {
    this.#transaction = transaction
    this.#raw = unwrap(transaction)
    this.#limits = limits
    this.#isExpired = ({ expiresAt }) => expiresAt !== null && expiresAt <= limits.now
    this.#blocksLeft = limits.blocksMax
  }

  async run(): Promise<Outcome> {
    await this.#freeDeleted()
    await this.#freeExpiredPages()
    await this.#freeExpiredTails()
    await this.#freeTrimmed()
    for (const log of this.#logs.values()) if (log.row !== log.before) this.#putLog(log)
    return {
      reclaimed: { more: this.#isExhausted, logIds: [...this.#freedOf] },
      damage: this.#damage.first,
      isChanged: this.#isChanged,
    }
  }

  get #isExhausted(): boolean {
    return this.#blocksLeft <= 0 || this.#rowsLeft <= 0
  }

  async #freeDeleted(): Promise<void> {
    const pages = this.#transaction.objectStore('pages')
    for (const chore of await this.#chores('deleted', 0)) {
      if (this.#isExhausted) return
      const [, , logId] = chore
      const count = Math.min(this.#blocksLeft, this.#rowsLeft)
      const keys = await pages.getAllKeys(pagesEnding(logId, -1), count)
      this.#blocksLeft -= keys.length
      // The chore counts as a row, because many deleted logs may have no pages.
      this.#rowsLeft -= 1 + keys.length
      const last = keys.at(-1)
      this.#isChanged = true
      if (last !== undefined) {
        for (const store of ['pages', 'parts'])
          this.#raw.objectStore(store).delete(pagesEnding(logId, -1, last[1]))
      }
      if (keys.length < count) {
        // Added by writers with a stale revision.
        this.#raw.objectStore('appends').delete(IDBKeyRange.bound([logId], [logId, []]))
        this.#raw.objectStore('chores').delete(chore)
      }
    }
  }

  async #freeExpiredPages(): Promise<void> {
    const index = this.#transaction.objectStore('pages').index('by-expiry')
    await this.#freeFromPages(index, IDBKeyRange.upperBound(this.#limits.now), this.#isExpired)
  }

  async #freeExpiredTails(): Promise<void> {
    for (const chore of await this.#chores('expired', this.#limits.now)) {
      if (this.#isExhausted) return
      const log = await this.#logOf(chore)
      if (log !== undefined && this.#freeFromTail(log, this.#isExpired) && log.isFolded)
        log.row = { ...log.row }
    }
  }

  async #freeTrimmed(): Promise<void> {
    for (const chore of await this.#chores('trimmed', this.#limits.trimmedBefore)) {
      if (this.#isExhausted) return
      const log = await this.#logOf(chore)
      if (log !== undefined) await this.#freeBelowTrim(log)
    }
  }

  async #freeBelowTrim(log: OpenLog): Promise<void> {
    const { logId } = log
    const pages = this.#transaction.objectStore('pages')
    const point = reclaimablePoint(log.row.head.trims, this.#limits.trimmedBefore)
    const isBelow: Condition = ({ endSeqNum }) => endSeqNum <= point
    const arePagesIntact = await this.#freeFromPages(pages, pagesEnding(logId, -1, point), isBelow)
    if (this.#isExhausted) return
    const crossing = pagesEnding(logId, point)
    const [page, key] = await Promise.all([pages.get(crossing), pages.getKey(crossing)])
    const isCrossingIntact =
      page === undefined || (await this.#damage.attempt(() => this.#freeFromPage(key!, page, isBelow)))
    const isTailIntact = this.#freeFromTail(log, isBelow)
    if (!arePagesIntact || !isCrossingIntact || !isTailIntact || !log.isFolded) return
    log.row = this.#isExhausted ? { ...log.row } : { ...log.row, freedBelow: point }
  }

  /**
   * Frees blocks from pages that each have some to free. Resolves to whether all pages that it read are
   * intact.
   */
  async #freeFromPages(source: PageSource, range: IDBKeyRange, isFree: Condition): Promise<boolean> {
    /** Damaged pages stay, at the beginning of the range. */
    let damaged = 0
    while (!this.#isExhausted) {
      const count = damaged + ROWS_PER_REQUEST
      const [rows, keys] = await Promise.all([source.getAll(range, count), source.getAllKeys(range, count)])
      for (const [index, row] of [...rows.entries()].slice(damaged)) {
        const free = async () => {
          const isFreed = await this.#freeFromPage(keys[index]!, row, isFree)
          if (!isFreed && !this.#isExhausted)
            throw corruptDatabase(`an index entry for a page of log ${row.logId} is wrong`)
        }
        if (!(await this.#damage.attempt(free))) damaged++
      }
      if (rows.length < count) break
    }
    return damaged === 0
  }

  /** Resolves to whether the page had anything to free, or to keep longer. */
  async #freeFromPage(key: PageKey, page: PageRow, isFree: Condition): Promise<boolean> {
    if (this.#isExhausted) return false
    this.#rowsLeft--
    const stored = readSummaries(page)
    const [logId, endSeqNum] = key
    if (page.logId !== logId || stored.at(-1)!.endSeqNum !== endSeqNum) {
      throw corruptDatabase(`a page of log ${logId} has the wrong key`)
    }
    const log = await this.#openLog(logId)
    const blocks = extendedBlocks(stored, log)
    const freed = this.#limit(blocks.filter(isFree))
    if (freed.length === 0) {
      if (blocks === stored) return false
      const expiries = blocks.map(({ expiresAt }) => expiresAt)
      this.#raw.objectStore('pages').put(withExpiries(page, expiries), key)
      this.#isChanged = true
      return true
    }
    this.#rowsLeft -= page.parts
    // A page with parts has a single block, so the data of this one is in its row.
    const kept =
      freed.length === blocks.length ? [] : without(freed, extendedBlocks(readBlocks(logId, page), log))
    this.#recordFreed(log, freed)
    this.#raw.objectStore('pages').delete(key)
    if (page.parts > 0) this.#raw.objectStore('parts').delete(partsOf(key))
    for (const page of packPages(logId, kept)) putPage(this.#raw, logId, page)
    return true
  }

  /** Returns whether the tail is intact. */
  #freeFromTail(log: OpenLog, isFree: Condition): boolean {
    return this.#damage.attemptSync(() => {
      const stored = readBlocks(log.logId, log.row.tail)
      const blocks = extendedBlocks(stored, log)
      const freed = this.#limit(blocks.filter(isFree))
      if (freed.length === 0 && blocks === stored) return
      if (freed.length > 0) this.#recordFreed(log, freed)
      log.row = { ...log.row, tail: encodePage(without(freed, blocks)) }
    })
  }

  /** The blocks that this call may still free. */
  #limit(blocks: readonly BlockSummary[]): readonly BlockSummary[] {
    return blocks.slice(0, this.#blocksLeft)
  }

  /** Updates the limits of the call and the metered bytes of the log. */
  #recordFreed(log: OpenLog | undefined, freed: readonly BlockSummary[]): void {
    this.#isChanged = true
    this.#blocksLeft -= freed.length
    if (log === undefined) return
    log.row = { ...log.row, meteredBytes: log.row.meteredBytes - blocksMeteredBytes(freed) }
    this.#freedOf.add(log.logId)
  }

  #putLog({ logId, stored, isFolded, before, row: freed }: OpenLog): void {
    this.#isChanged = true
    // What a damaged log has to free is unknown, so its chores stay.
    if (!isFolded) {
      this.#raw.objectStore('logs').put(freed, logId)
      return
    }
    const row = { ...freed, revision: freed.revision + 1 }
    let logWrite: LogWrite = { row, pages: [], choresAdded: [], choresRemoved: [] }
    this.#damage.attemptSync(() => {
      readBlocks(logId, row.tail)
      logWrite = writeWithExactChores(logId, before, row)
    })
    replaceLog(this.#raw, logId, stored.row, logWrite)
  }

  #chores(kind: ChoreKind, until: number): Promise<Chore[]> {
    return this.#transaction.objectStore('chores').getAllKeys(choresUntil(kind, until), ROWS_MAX)
  }

  /** The log of a chore. Deletes a chore whose log is gone. */
  async #logOf(chore: Chore): Promise<OpenLog | undefined> {
    this.#rowsLeft--
    const log = await this.#openLog(chore[2])
    if (log !== undefined) return log
    this.#isChanged = true
    this.#raw.objectStore('chores').delete(chore)
    return undefined
  }

  async #openLog(logId: string): Promise<OpenLog | undefined> {
    const known = this.#logs.get(logId)
    if (known !== undefined) return known
    const stored = await readTailLog(this.#transaction, logId)
    if (stored === undefined) return undefined
    let before = stored.row
    const isFolded = this.#damage.attemptSync(() => {
      before = foldTailRows(logId, stored)
    })
    const log = { logId, stored, isFolded, before, row: before }
    this.#logs.set(logId, log)
    return log
  }
}

/** The blocks with their extended expiries; the same array if no extension applies. */
function extendedBlocks<Block extends BlockSummary>(
  blocks: readonly Block[],
  log: OpenLog | undefined,
): readonly Block[] {
  const extended = blocks.map((block) => {
    const expiresAt = extendedExpiry(block, log?.row.head.extensions)
    return expiresAt === block.expiresAt ? block : { ...block, expiresAt }
  })
  return extended.every((block, index) => block === blocks[index]) ? blocks : extended
}

function without<Block extends BlockSummary>(
  freed: readonly BlockSummary[],
  blocks: readonly Block[],
): Block[] {
  const firsts = new Set(freed.map(({ firstSeqNum }) => firstSeqNum))
  return blocks.filter(({ firstSeqNum }) => !firsts.has(firstSeqNum))
}

/** Lets work on many items continue past damaged ones, and keeps the first damage found. */
class DamageCollector {
  #first: StorageFailure | undefined

  get first(): StorageFailure | undefined {
    return this.#first
  }

  /** Resolves to false if the work failed because of damage. */
  async attempt(work: () => Promise<unknown>): Promise<boolean> {
    try {
      await work()
      return true
    } catch (error) {
      return this.#keep(error)
    }
  }

  attemptSync(work: () => void): boolean {
    try {
      work()
      return true
    } catch (error) {
      return this.#keep(error)
    }
  }

  #keep(error: unknown): false {
    if (!StorageFailure.is(error) || error.kind !== 'corrupt') throw error
    this.#first ??= error
    return false
  }
}
