import { unwrap } from 'idb'
import { reclaimablePoint } from '../../../src/core/trims.ts'
import type { Reclaimed, ReclaimLimits } from '../../../src/storage/contract.ts'
import type { StorageFailure } from '../../../src/storage/errors.ts'
import type { Connection } from './connection.ts'
import { Damage } from './damage.ts'
import { corrupt } from './failures.ts'
import { listExactly } from './list-exactly.ts'
import type { LogRow } from './log-row.ts'
import { type LogWrite, meteredBytesOf } from './log-write.ts'
import { type BlockSummary, pageOf } from './page.ts'
import { endingWithin, partsOfPage } from './page-keys.ts'
import { blocksIn, type PageRow, summariesIn } from './page-row.ts'
import { putLog, putPage } from './put-log.ts'
import type { Chore, ChoreKind, PageKey, WriteTransaction } from './schema.ts'
import { foldedRow, readLog, type StoredLog } from './stored-log.ts'
import { pagesOf } from './stored-page.ts'
import { writeIn } from './transactions.ts'

/** Rows that one call reads at the most, so that appends do not wait long: a few megabytes. */
const ROWS_MAX = 64

/** Rows that are asked for at once. */
const ROWS_AT_ONCE = 16

/** A log of which something is freed. */
interface OpenLog {
  readonly logId: string
  /** As it is stored. */
  readonly stored: StoredLog
  /** Whether it is freed of with what is behind it, which is damaged otherwise. */
  readonly isFolded: boolean
  readonly before: LogRow
  row: LogRow
}

type Condition = (block: BlockSummary) => boolean

/**
 * Frees what can be freed. What is then lost with the power is freed again. What is damaged is left as it is, and keeps nothing else from being freed: rejects with
 * `StorageFailure` of kind `corrupt` once that was done.
 */
export async function reclaim(connection: Connection, limits: ReclaimLimits): Promise<Reclaimed> {
  const { reclaimed, damage, isChanged } = await connection.run((db) =>
    writeIn(db, ['logs', 'appends', 'pages', 'parts', 'chores'], 'relaxed', (transaction) =>
      new Reclaim(transaction, limits).run(),
    ),
  )
  if (damage === undefined) return reclaimed
  // The call that has nothing else to do tells.
  if (!isChanged) throw damage
  return { ...reclaimed, more: true }
}

interface Outcome {
  readonly reclaimed: Reclaimed
  /** The first that was found. */
  readonly damage: StorageFailure | undefined
  readonly isChanged: boolean
}

/** Of the pages, or in the order of one of their indexes. */
interface PageSource {
  getAll(range: IDBKeyRange, count: number): Promise<PageRow[]>
  getAllKeys(range: IDBKeyRange, count: number): Promise<PageKey[]>
}

/** One call, within one transaction. */
class Reclaim {
  readonly #transaction: WriteTransaction
  /** For what is written, which nobody waits for. */
  readonly #raw: IDBTransaction
  readonly #limits: ReclaimLimits
  readonly #isExpired: Condition
  readonly #logs = new Map<string, OpenLog>()
  readonly #freedOf = new Set<string>()
  #blocksLeft: number
  #rowsLeft = ROWS_MAX
  readonly #damage = new Damage()
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
      const keys = await pages.getAllKeys(endingWithin(logId, -1), count)
      this.#blocksLeft -= keys.length
      // The chore is a row, too: of many logs that had no pages, it is all there is.
      this.#rowsLeft -= 1 + keys.length
      const last = keys.at(-1)
      this.#isChanged = true
      if (last !== undefined) {
        for (const store of ['pages', 'parts'])
          this.#raw.objectStore(store).delete(endingWithin(logId, -1, last[1]))
      }
      if (keys.length < count) {
        // Of somebody who did not know that the log is gone.
        this.#raw.objectStore('appends').delete(IDBKeyRange.bound([logId], [logId, []]))
        this.#raw.objectStore('chores').delete(chore)
      }
    }
  }

  async #freeExpiredPages(): Promise<void> {
    const index = this.#transaction.objectStore('pages').index('by-expiry')
    await this.#freeOfPages(index, IDBKeyRange.upperBound(this.#limits.now), this.#isExpired)
  }

  async #freeExpiredTails(): Promise<void> {
    for (const chore of await this.#chores('expired', this.#limits.now)) {
      if (this.#isExhausted) return
      const log = await this.#log(chore)
      if (log !== undefined && this.#freeOfTail(log, this.#isExpired) && log.isFolded)
        log.row = { ...log.row }
    }
  }

  async #freeTrimmed(): Promise<void> {
    for (const chore of await this.#chores('trimmed', this.#limits.trimmedBefore)) {
      if (this.#isExhausted) return
      const log = await this.#log(chore)
      if (log !== undefined) await this.#freeBelowTrim(log)
    }
  }

  async #freeBelowTrim(log: OpenLog): Promise<void> {
    const { logId } = log
    const pages = this.#transaction.objectStore('pages')
    const point = reclaimablePoint(log.row.head.trims, this.#limits.trimmedBefore)
    const isBelow: Condition = ({ endSeqNum }) => endSeqNum <= point
    const areWhole = await this.#freeOfPages(pages, endingWithin(logId, -1, point), isBelow)
    if (this.#isExhausted) return
    const across = endingWithin(logId, point)
    const [page, key] = await Promise.all([pages.get(across), pages.getKey(across)])
    const isAcrossWhole =
      page === undefined || (await this.#damage.meet(() => this.#freeOfPage(key!, page, isBelow)))
    const isTailWhole = this.#freeOfTail(log, isBelow)
    if (!areWhole || !isAcrossWhole || !isTailWhole || !log.isFolded) return
    log.row = this.#isExhausted ? { ...log.row } : { ...log.row, freedBelow: point }
  }

  /** Frees of pages each of which has something to free. Resolves to whether none of those that it came to is damaged. */
  async #freeOfPages(source: PageSource, range: IDBKeyRange, isFree: Condition): Promise<boolean> {
    /** They stay, and so they are in front of all that is left. */
    let damaged = 0
    while (!this.#isExhausted) {
      const count = damaged + ROWS_AT_ONCE
      const [rows, keys] = await Promise.all([source.getAll(range, count), source.getAllKeys(range, count)])
      for (const [index, row] of [...rows.entries()].slice(damaged)) {
        const free = async () => {
          const isFreed = await this.#freeOfPage(keys[index]!, row, isFree)
          if (!isFreed && !this.#isExhausted) throw corrupt(`a page of log ${row.logId} is listed wrongly`)
        }
        if (!(await this.#damage.meet(free))) damaged++
      }
      if (rows.length < count) break
    }
    return damaged === 0
  }

  /** Resolves to whether there was anything to free. */
  async #freeOfPage(key: PageKey, page: PageRow, isFree: Condition): Promise<boolean> {
    if (this.#isExhausted) return false
    this.#rowsLeft--
    const blocks = summariesIn(page)
    const [logId, endSeqNum] = key
    if (page.logId !== logId || blocks.at(-1)!.endSeqNum !== endSeqNum) {
      throw corrupt(`a page of log ${logId} is not where it belongs`)
    }
    this.#rowsLeft -= page.parts
    const freed = this.#within(blocks.filter(isFree))
    if (freed.length === 0) return false
    // A page with parts has one block, so this one has its data.
    const kept = freed.length === blocks.length ? [] : without(freed, blocksIn(logId, page))
    this.#take(await this.#openLog(logId), freed)
    this.#raw.objectStore('pages').delete(key)
    if (page.parts > 0) this.#raw.objectStore('parts').delete(partsOfPage(key))
    for (const page of pagesOf(logId, kept)) putPage(this.#raw, logId, page)
    return true
  }

  /** Returns whether the tail is whole. */
  #freeOfTail(log: OpenLog, isFree: Condition): boolean {
    return this.#damage.meetNow(() => {
      const blocks = blocksIn(log.logId, log.row.tail)
      const freed = this.#within(blocks.filter(isFree))
      if (freed.length === 0) return
      this.#take(log, freed)
      log.row = { ...log.row, tail: pageOf(without(freed, blocks)) }
    })
  }

  /** Of these blocks those that may be freed in this call. */
  #within(blocks: readonly BlockSummary[]): readonly BlockSummary[] {
    return blocks.slice(0, this.#blocksLeft)
  }

  /** Takes blocks that are freed off what the call may free and what the log measures. */
  #take(log: OpenLog | undefined, freed: readonly BlockSummary[]): void {
    this.#isChanged = true
    this.#blocksLeft -= freed.length
    if (log === undefined) return
    log.row = { ...log.row, meteredBytes: log.row.meteredBytes - meteredBytesOf(freed) }
    this.#freedOf.add(log.logId)
  }

  #putLog({ logId, stored, isFolded, before, row: freed }: OpenLog): void {
    this.#isChanged = true
    // Of what is damaged nobody knows what there will be to free: it stays listed as it is.
    if (!isFolded) {
      this.#raw.objectStore('logs').put(freed, logId)
      return
    }
    const row = { ...freed, revision: freed.revision + 1 }
    let write: LogWrite = { row, pages: [], choresAdded: [], choresRemoved: [] }
    this.#damage.meetNow(() => {
      blocksIn(logId, row.tail)
      write = listExactly(logId, before, row)
    })
    putLog(this.#raw, logId, stored.row, write)
  }

  #chores(kind: ChoreKind, until: number): Promise<Chore[]> {
    const due = IDBKeyRange.bound([kind], [kind, until, []])
    return this.#transaction.objectStore('chores').getAllKeys(due, ROWS_MAX)
  }

  /** The log that a chore is about. A chore without a log is no chore. */
  async #log(chore: Chore): Promise<OpenLog | undefined> {
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
    const stored = await readLog(this.#transaction, logId)
    if (stored === undefined) return undefined
    let before = stored.row
    const isFolded = this.#damage.meetNow(() => {
      before = foldedRow(logId, stored)
    })
    const log = { logId, stored, isFolded, before, row: before }
    this.#logs.set(logId, log)
    return log
  }
}

function without<Block extends BlockSummary>(
  freed: readonly BlockSummary[],
  blocks: readonly Block[],
): Block[] {
  const firsts = new Set(freed.map(({ firstSeqNum }) => firstSeqNum))
  return blocks.filter(({ firstSeqNum }) => !firsts.has(firstSeqNum))
}
