import { extendedExpiry, isExpired } from '../../../src/core/retention.ts'
import type { LogUpdate } from '../../../src/storage/commit-plan.ts'
import type {
  AppendRequest,
  Head,
  ReadRange,
  ReclaimLimits,
  StoredBlock,
} from '../../../src/storage/contract.ts'
import { StorageConflict } from '../../../src/storage/errors.ts'
import { identityOf } from '../../../src/storage/heads.ts'
import { type MemoryLog, takeBlocks } from './log.ts'
import { LogRows } from './log-rows.ts'
import type { Logs, MemoryLogs } from './logs.ts'
import { hashOfWords, parseId, WORDS } from './packed-ids.ts'
import { RowDeadlines } from './row-deadlines.ts'
import { NOWHERE, Slabs } from './slabs.ts'
import { SlotIndex } from './slot-index.ts'

/** Larger logs have objects, with a list that finds a block without visiting those before it. */
const DATA_BYTES_MAX = 16_384
const BLOCKS_MAX = 64

/** The number of logs with objects that may get rows when a log is created. */
const SCAN_MAX = 8

const NEVER = Number.POSITIVE_INFINITY

const WHOLE_LOG: ReadRange = {
  from: { seqNum: 0 },
  endSeqNum: Number.POSITIVE_INFINITY,
  bytesMax: Number.POSITIVE_INFINITY,
}

/**
 * Logs, the small ones without objects. Such a log is a row of {@link LogRows}, and its blocks are a ring in
 * {@link Slabs}, whose last block leads to the first. A log that outgrows its row has objects from then on. A
 * log whose id is not of the form that the engine draws always has objects.
 */
export class PackedLogs implements Logs {
  readonly #unpacked: MemoryLogs
  /** The logs with objects that were not considered for a row yet. */
  readonly #earlier: Iterator<MemoryLog>
  readonly #rows = new LogRows()
  readonly #index = new SlotIndex<Uint32Array>((row, id) => this.#rows.hasId(row, id))
  readonly #slabs = new Slabs((row, slab) => this.#moveBlocks(row, slab))
  readonly #expiries = new RowDeadlines()
  readonly #trims = new RowDeadlines()
  /** The words of the id that was parsed last. */
  readonly #id = new Uint32Array(WORDS)
  /** The log that was found last: an append looks it up twice, because it asks for memory first. */
  #foundId = ''
  #foundRow = 0

  /** @param logs Logs with objects, which nothing else uses from now on. */
  constructor(logs: MemoryLogs) {
    this.#unpacked = logs
    this.#earlier = logs.values()
  }

  headOf(logId: string): Head | undefined {
    const row = this.#find(logId)
    return row === 0 ? this.#unpacked.headOf(logId) : this.#rows.headOf(row)
  }

  read(logId: string, range: ReadRange): StoredBlock[] {
    const row = this.#find(logId)
    return row === 0
      ? this.#unpacked.read(logId, range)
      : takeBlocks(this.#blocksFrom(row, range.from), range)
  }

  allocate(logId: string, bytes: number): Uint8Array {
    const row = this.#find(logId)
    if (row === 0) return this.#unpacked.allocate(logId, bytes)
    return this.#hasRoomFor(row, bytes) ? this.#slabs.allocate(bytes) : new Uint8Array(bytes)
  }

  append(request: AppendRequest): void {
    const { logId, expected, block, head } = request
    const row = this.#find(logId)
    if (row === 0) {
      this.#unpacked.append(request)
      return
    }
    if (!this.#rows.hasHead(row, expected)) {
      throw new StorageConflict(`log ${logId} does not have the expected head`)
    }
    if (!this.#hasRoomFor(row, block.data.length)) {
      this.#unpack(logId, row)
      this.#unpacked.append(request)
      return
    }
    this.#add(row, block)
    this.#rows.setHead(row, head)
    if (head.trims.length > 0) this.#trims.set(row, this.#trimmedAt(row))
    this.#slabs.compact()
  }

  apply(update: LogUpdate): void {
    const { logId, head, isNew } = update
    if (isNew) {
      this.#packEarlier()
      if (!this.#create(logId, head!)) this.#unpacked.apply(update)
      return
    }
    const row = this.#find(logId)
    if (row === 0) this.#unpacked.apply(update)
    else if (head === undefined) this.#remove(logId, row)
    else this.#rows.setHead(row, head)
  }

  meteredBytes(logId: string): number {
    const row = this.#find(logId)
    return row === 0 ? this.#unpacked.meteredBytes(logId) : this.#rows.meteredBytesOf(row)
  }

  isDue(limits: ReclaimLimits): boolean {
    const row = this.#expiries.due(limits.now) ?? this.#trims.due(limits.trimmedBefore)
    return row !== undefined || this.#unpacked.isDue(limits)
  }

  freeNext(limits: ReclaimLimits): string | undefined {
    const { now, trimmedBefore } = limits
    const expired = this.#expiries.due(now)
    const row = expired ?? this.#trims.due(trimmedBefore)
    if (row === undefined) return this.#unpacked.freeNext(limits)
    const before = expired === undefined ? this.#rows.lastOf(row) : this.#beforeExpiring(row)
    const isExtended = expired !== undefined && this.#extend(row, this.#slabs.nextOf(before), now)
    if (!isExtended) this.#free(row, before)
    this.#updateDeadlines(row)
    this.#slabs.compact()
    return isExtended ? undefined : this.#rows.idOf(row)
  }

  /** Returns the row of a log; 0 if it has none. */
  #find(logId: string): number {
    if (logId === this.#foundId) return this.#foundRow
    if (!parseId(logId, this.#id)) return 0
    const row = this.#index.find(hashOfWords(this.#id), this.#id)
    if (row !== 0) {
      this.#foundId = logId
      this.#foundRow = row
    }
    return row
  }

  /** Returns the row of a new log; 0 if its id is not of the form that the engine draws. */
  #create(logId: string, head: Head): number {
    if (!parseId(logId, this.#id)) return 0
    const row = this.#rows.add(this.#id, head)
    this.#index.add(hashOfWords(this.#id), row)
    return row
  }

  #remove(logId: string, row: number): void {
    while (this.#rows.blocksOf(row) > 0) this.#free(row, this.#rows.lastOf(row))
    this.#updateDeadlines(row)
    parseId(logId, this.#id)
    this.#index.delete(hashOfWords(this.#id), this.#id)
    this.#rows.remove(row)
    this.#foundId = ''
    this.#foundRow = 0
    this.#slabs.compact()
  }

  /** Gives a log with a row objects. */
  #unpack(logId: string, row: number): void {
    const head = this.#rows.headOf(row)
    const blocks = [...this.#blocksFrom(row, WHOLE_LOG.from)]
    this.#unpacked.apply({ logId, head, isNew: true })
    // Copies the data.
    for (const block of blocks) this.#unpacked.append({ logId, expected: identityOf(head), block, head })
    this.#remove(logId, row)
  }

  /** Gives rows to a few of the logs that had objects before: doing so for all would take long. */
  #packEarlier(): void {
    for (let left = SCAN_MAX; left > 0; left--) {
      const { value: log } = this.#earlier.next()
      if (log === undefined) return
      this.#pack(log)
    }
  }

  #pack(log: MemoryLog): void {
    const { id, current: head } = log
    if (log.meteredBytes > DATA_BYTES_MAX) return
    const blocks = log.read(WHOLE_LOG)
    const dataBytes = blocks.reduce((sum, { data }) => sum + data.length, 0)
    if (blocks.length > BLOCKS_MAX || dataBytes > DATA_BYTES_MAX) return
    const row = this.#create(id, head)
    if (row === 0) return
    this.#unpacked.apply({ logId: id, head: undefined, isNew: false })
    for (const block of blocks) this.#add(row, block)
    this.#updateDeadlines(row)
  }

  #hasRoomFor(row: number, dataBytes: number): boolean {
    const rows = this.#rows
    return rows.dataBytesOf(row) + dataBytes <= DATA_BYTES_MAX && rows.blocksOf(row) < BLOCKS_MAX
  }

  #add(row: number, block: StoredBlock): void {
    const slabs = this.#slabs
    const last = this.#rows.lastOf(row)
    const expiry = block.expiresAt ?? NEVER
    // The last block is compared first, because an append visits it anyway, and most blocks expire after it.
    const expiresFirst =
      last === NOWHERE || (expiry < slabs.expiryOf(last) && expiry < this.#expiries.timeOf(row))
    if (expiresFirst) this.#expiries.set(row, expiry)
    this.#rows.setLast(row, slabs.add(block, row, last))
    this.#rows.count(row, block.data.length, block.meteredBytes)
  }

  /** Frees the block that follows the one at a place. */
  #free(row: number, before: number): void {
    const slabs = this.#slabs
    const rows = this.#rows
    const place = slabs.nextOf(before)
    if (place === before) rows.setLast(row, NOWHERE)
    else {
      slabs.setNext(before, slabs.nextOf(place))
      if (place === rows.lastOf(row)) rows.setLast(row, before)
    }
    rows.count(row, slabs.dataBytesOf(place), slabs.meteredBytesOf(place), -1)
    slabs.remove(place)
  }

  /** Moves the blocks that a log has in a slab. */
  #moveBlocks(row: number, slab: number): void {
    const slabs = this.#slabs
    let before = this.#rows.lastOf(row)
    for (let left = this.#rows.blocksOf(row); left > 0; left--) {
      let place = slabs.nextOf(before)
      if (slabs.isIn(place, slab)) {
        const isAlone = place === before
        const isLast = place === this.#rows.lastOf(row)
        place = slabs.move(place)
        slabs.setNext(isAlone ? place : before, place)
        if (isLast) this.#rows.setLast(row, place)
      }
      before = place
    }
  }

  *#blocksFrom(row: number, from: ReadRange['from']): Generator<StoredBlock, void, undefined> {
    let place = this.#rows.lastOf(row)
    let isReached = false
    for (let left = this.#rows.blocksOf(row); left > 0; left--) {
      place = this.#slabs.nextOf(place)
      isReached ||= this.#slabs.isReached(place, from)
      if (isReached) yield this.#slabs.blockAt(place)
    }
  }

  #updateDeadlines(row: number): void {
    const isEmpty = this.#rows.blocksOf(row) === 0
    const expiry = isEmpty ? NEVER : this.#slabs.expiryOf(this.#slabs.nextOf(this.#beforeExpiring(row)))
    this.#expiries.set(row, expiry)
    this.#trims.set(row, this.#trimmedAt(row))
  }

  /** Returns the place before the block that expires next: blocks need not expire in order. */
  #beforeExpiring(row: number): number {
    const slabs = this.#slabs
    let before = this.#rows.lastOf(row)
    let found = before
    let earliest = NEVER
    for (let left = this.#rows.blocksOf(row); left > 0; left--) {
      const place = slabs.nextOf(before)
      if (slabs.expiryOf(place) < earliest) {
        earliest = slabs.expiryOf(place)
        found = before
      }
      before = place
    }
    return found
  }

  /** Returns whether a block that is due expires later now. */
  #extend(row: number, place: number, now: number): boolean {
    const expiry = extendedExpiry(this.#slabs.blockAt(place), this.#rows.rareOf(row)?.extensions)
    if (isExpired(expiry, now)) return false
    this.#slabs.setExpiry(place, expiry ?? NEVER)
    return true
  }

  /** Returns the time at which the first block was trimmed; infinite if it was not. */
  #trimmedAt(row: number): number {
    const trims = this.#rows.rareOf(row)?.trims
    const last = this.#rows.lastOf(row)
    if (trims === undefined || last === NOWHERE) return NEVER
    const end = this.#slabs.endSeqNumOf(this.#slabs.nextOf(last))
    return trims.find(({ point }) => end <= point)?.at ?? NEVER
  }
}
