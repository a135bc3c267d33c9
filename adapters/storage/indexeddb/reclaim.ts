import { unwrap } from 'idb'
import { reclaimablePoint } from '../../../src/core/trims.ts'
import type { Reclaimed, ReclaimLimits } from '../../../src/storage/contract.ts'
import type { Connection } from './connection.ts'
import { type LogRow, listExactly, meteredBytesOf } from './log-row.ts'
import { type BlockSummary, endSeqNumOf, pageOf, summariesOf } from './page.ts'
import { endingWithin, partsOfPage } from './page-keys.ts'
import { blocksIn, type PageRow, pagesOf } from './page-row.ts'
import { putLog, putPage } from './put-log.ts'
import type { Chore, ChoreKind, PageKey, WriteTransaction } from './schema.ts'
import { writeIn } from './transactions.ts'

/** Rows that one call reads at the most, so that appends do not wait long: a few megabytes. */
const ROWS_MAX = 64

/** Rows that are asked for at once. */
const ROWS_AT_ONCE = 16

/** A log of which something is freed. */
interface OpenLog {
  readonly logId: string
  readonly before: LogRow
  row: LogRow
}

type Condition = (block: BlockSummary) => boolean

/** Frees what can be freed. What is then lost with the power is freed again. */
export function reclaim(connection: Connection, limits: ReclaimLimits): Promise<Reclaimed> {
  return connection.run((db) =>
    writeIn(db, ['logs', 'pages', 'parts', 'chores'], 'relaxed', (transaction) =>
      new Reclaim(transaction, limits).run(),
    ),
  )
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

  constructor(transaction: WriteTransaction, limits: ReclaimLimits) {
    this.#transaction = transaction
    this.#raw = unwrap(transaction)
    this.#limits = limits
    this.#isExpired = ({ expiresAt }) => expiresAt !== null && expiresAt <= limits.now
    this.#blocksLeft = limits.blocksMax
  }

  async run(): Promise<Reclaimed> {
    await this.#freeDeleted()
    await this.#freeExpiredPages()
    await this.#freeExpiredTails()
    await this.#freeTrimmed()
    for (const { logId, before, row } of this.#logs.values()) {
      if (row === before) continue
      putLog(this.#raw, logId, listExactly(logId, before, { ...row, revision: row.revision + 1 }))
    }
    return { more: this.#isExhausted, logIds: [...this.#freedOf] }
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
      if (last !== undefined) {
        for (const store of ['pages', 'parts'])
          this.#raw.objectStore(store).delete(endingWithin(logId, -1, last[1]))
      }
      if (keys.length < count) this.#raw.objectStore('chores').delete(chore)
    }
  }

  async #freeExpiredPages(): Promise<void> {
    const index = this.#transaction.objectStore('pages').index('by-expiry')
    const due = IDBKeyRange.upperBound(this.#limits.now)
    while (!this.#isExhausted) {
      const rows = await index.getAll(due, ROWS_AT_ONCE)
      if (rows.length === 0) return
      for (const row of rows) await this.#freeOfPage(row, this.#isExpired)
    }
  }

  async #freeExpiredTails(): Promise<void> {
    for (const chore of await this.#chores('expired', this.#limits.now)) {
      if (this.#isExhausted) return
      const log = await this.#log(chore)
      if (log !== undefined) this.#freeOfTail(log, this.#isExpired)
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
    for (;;) {
      const rows = await pages.getAll(endingWithin(logId, -1, point), ROWS_AT_ONCE)
      for (const row of rows) await this.#freeOfPage(row, isBelow)
      if (this.#isExhausted) return
      if (rows.length < ROWS_AT_ONCE) break
    }
    const across = await pages.get(endingWithin(logId, point))
    if (across !== undefined) await this.#freeOfPage(across, isBelow)
    this.#freeOfTail(log, isBelow)
    if (!this.#isExhausted) log.row = { ...log.row, freedBelow: point }
  }

  async #freeOfPage(page: PageRow, isFree: Condition): Promise<void> {
    if (this.#isExhausted) return
    const { logId } = page
    const log = await this.#openLog(logId)
    this.#rowsLeft -= 1 + page.parts
    const freed = this.#admit(log, summariesOf(page).filter(isFree))
    if (freed.length === 0) return
    const key: PageKey = [logId, endSeqNumOf(page)]
    this.#raw.objectStore('pages').delete(key)
    if (page.parts > 0) this.#raw.objectStore('parts').delete(partsOfPage(key))
    if (freed.length === summariesOf(page).length) return
    // A page with parts has one block, so this one has its data.
    const kept = blocksIn(logId, page).filter(({ firstSeqNum }) => !freed.includes(firstSeqNum))
    for (const page of pagesOf(logId, kept)) putPage(this.#raw, logId, page)
  }

  #freeOfTail(log: OpenLog, isFree: Condition): void {
    const blocks = blocksIn(log.logId, log.row.tail)
    const freed = this.#admit(log, blocks.filter(isFree))
    const kept = blocks.filter(({ firstSeqNum }) => !freed.includes(firstSeqNum))
    log.row = { ...log.row, tail: pageOf(kept) }
  }

  /** Of these blocks those that may be freed in this call, as their first sequence numbers, already taken off what the log measures. */
  #admit(log: OpenLog | undefined, blocks: readonly BlockSummary[]): number[] {
    const freed = blocks.slice(0, this.#blocksLeft)
    this.#blocksLeft -= freed.length
    if (log !== undefined && freed.length > 0) {
      log.row = { ...log.row, meteredBytes: log.row.meteredBytes - meteredBytesOf(freed) }
      this.#freedOf.add(log.logId)
    }
    return freed.map(({ firstSeqNum }) => firstSeqNum)
  }

  #chores(kind: ChoreKind, until: number): Promise<Chore[]> {
    const due = IDBKeyRange.bound([kind], [kind, until, []])
    return this.#transaction.objectStore('chores').getAllKeys(due, ROWS_MAX)
  }

  /** The log that a chore is about. A chore without a log is no chore. */
  async #log(chore: Chore): Promise<OpenLog | undefined> {
    this.#rowsLeft--
    const log = await this.#openLog(chore[2])
    if (log === undefined) this.#raw.objectStore('chores').delete(chore)
    return log
  }

  async #openLog(logId: string): Promise<OpenLog | undefined> {
    const known = this.#logs.get(logId)
    if (known !== undefined) return known
    const before = await this.#transaction.objectStore('logs').get(logId)
    if (before === undefined) return undefined
    const log = { logId, before, row: before }
    this.#logs.set(logId, log)
    return log
  }
}
