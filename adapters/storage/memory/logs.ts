import { extendedExpiry, isExpired } from '../../../src/core/retention.ts'
import { UNBUFFERED_BYTES_MAX } from '../../../src/model/bytes.ts'
import {
  type BlockPage,
  cutRecords,
  pagesOf,
  wantedPages,
  wantsPart,
} from '../../../src/storage/block-pages.ts'
import type { LogHeads, LogUpdate } from '../../../src/storage/commit-plan.ts'
import type {
  AppendRequest,
  Head,
  ReadRange,
  Reclaimed,
  ReclaimLimits,
  StoredBlock,
} from '../../../src/storage/contract.ts'
import { StorageConflict } from '../../../src/storage/errors.ts'
import { copyHead } from '../../../src/storage/heads.ts'
import { OrderedList } from '../../../src/storage/ordered-list.ts'
import { Arena, SMALL_PIECE_BYTES } from './arena.ts'

/** All logs, and which of them have blocks to free. */
export class MemoryLogs implements LogHeads {
  readonly #logs = new Map<string, MemoryLog>()
  /** The memory for the first block of each log. */
  readonly #arena = new Arena()
  readonly #expiries = new Deadlines('expiryDue')
  readonly #trims = new Deadlines('trimDue')
  #created = 0

  head(logId: string): Head | undefined {
    return this.#logs.get(logId)?.head
  }

  read(logId: string, range: ReadRange): StoredBlock[] {
    return this.#logs.get(logId)?.read(range) ?? []
  }

  allocate(logId: string, bytes: number): Uint8Array {
    return this.#logs.get(logId)?.allocate(bytes) ?? new Uint8Array(bytes)
  }

  append({ logId, expected, block, head }: AppendRequest): void {
    const log = this.#logs.get(logId)
    // Compared here, because appends are frequent: a function would be called with new objects.
    if (
      log?.current.appendId !== expected.appendId ||
      log.current.tail.seqNum !== expected.seqNum ||
      log.current.epoch !== expected.epoch
    ) {
      throw new StorageConflict(`log ${logId} does not have the expected head`)
    }
    if (log.append(block, head)) this.#watch(log)
  }

  /** Returns the stored head, which must not be handed out. */
  headOf(logId: string): Head | undefined {
    return this.#logs.get(logId)?.current
  }

  /** Frees the blocks of a deleted log at once: dropping it costs the same whatever its size. */
  apply({ logId, head, isNew }: LogUpdate): void {
    const log = this.#logs.get(logId)!
    if (head === undefined) {
      this.#logs.delete(logId)
      this.#expiries.set(log, undefined)
      this.#trims.set(log, undefined)
    } else if (isNew) this.#logs.set(logId, new MemoryLog(logId, ++this.#created, head, this.#arena))
    else log.current = head
  }

  meteredBytes(logId: string): number {
    return this.#logs.get(logId)?.meteredBytes ?? 0
  }

  reclaim({ now, trimmedBefore, blocksMax }: ReclaimLimits): Reclaimed {
    const touched = new Set<MemoryLog>()
    for (let freed = 0; ; freed++) {
      const expired = this.#expiries.due(now)
      const log = expired ?? this.#trims.due(trimmedBefore)
      if (log === undefined || freed >= blocksMax) {
        return { more: log !== undefined, logIds: [...touched].map(({ id }) => id) }
      }
      if (expired === undefined) log.freeFirst()
      if (expired === undefined || log.freeExpired(now)) touched.add(log)
      this.#watch(log)
    }
  }

  #watch(log: MemoryLog): void {
    this.#expiries.set(log, log.expiresAt)
    this.#trims.set(log, log.trimmedAt)
  }
}

/** The bytes that are searched for a record. */
const PAGE_BYTES = 4096

/** One log: its head and its blocks as they were appended. Merging blocks would gain nothing in memory. */
export class MemoryLog {
  readonly id: string
  /** The number of the log, in the order of creation. */
  readonly serial: number
  /** When its next block expires, and when its first block was trimmed. Set by {@link Deadlines} only. */
  expiryDue: number | undefined
  trimDue: number | undefined
  /** The stored head. Never handed out. */
  current: Head
  #meteredBytes = 0
  readonly #blocks = new OrderedList<StoredBlock>(bySeqNum)
  /** Blocks by expiry, if that is not the order of the log: a retention policy was shortened. */
  #expiring: OrderedList<StoredBlock> | undefined
  /** When the block that was appended last expires; Infinity for never. */
  #lastExpiry = 0
  readonly #firstArena: Arena
  /** The memory for later blocks. Freed with this log. */
  #arena: Arena | undefined

  constructor(id: string, serial: number, head: Head, firstArena: Arena) {
    this.id = id
    this.serial = serial
    this.current = head
    this.#firstArena = firstArena
  }

  get head(): Head {
    return copyHead(this.current)
  }

  /** Metered bytes of the blocks that are not freed. */
  get meteredBytes(): number {
    return this.#meteredBytes
  }

  /**
   * A piece is no larger than what the log holds. Only its first block shares one with those of other logs,
   * so that a log never retains more than one such piece.
   */
  allocate(bytes: number): Uint8Array {
    const held = this.#meteredBytes
    if (held === 0) return this.#firstArena.allocate(bytes, SMALL_PIECE_BYTES)
    this.#arena ??= new Arena()
    return this.#arena.allocate(bytes, held)
  }

  /** Returns whether blocks may have to be freed at another time than before. */
  append(block: StoredBlock, head: Head): boolean {
    const { data } = block
    // Asking for the buffer of a short array would create one.
    const isTight =
      data.length > UNBUFFERED_BYTES_MAX &&
      (data.length === data.buffer.byteLength || this.#firstArena.has(data) || this.#arena?.has(data))
    const stored = isTight ? block : copyBlock(block)
    const expiry = stored.expiresAt ?? Number.POSITIVE_INFINITY
    if (expiry < this.#lastExpiry) this.#expiring ??= this.#byExpiry()
    this.#lastExpiry = expiry
    const isFirst = this.#blocks.add(stored)
    this.#meteredBytes += stored.meteredBytes
    const expiresFirst =
      this.#expiring === undefined ? isFirst : stored.expiresAt !== null && this.#expiring.add(stored)
    this.current = head
    return expiresFirst || head.trims.length > 0
  }

  read(range: ReadRange): StoredBlock[] {
    const { from, endSeqNum, bytesMax, recordsMax = Number.POSITIVE_INFINITY } = range
    if ('seqNum' in from && from.seqNum >= endSeqNum) return []
    const reached =
      'seqNum' in from
        ? (block: StoredBlock) => block.endSeqNum > from.seqNum
        : (block: StoredBlock) => block.lastTimestamp >= from.timestamp
    const found: StoredBlock[] = []
    let bytes = 0
    let records = 0
    for (const block of this.#blocks.from(reached)) {
      if (block.firstSeqNum >= endSeqNum) break
      const wanted = (found.length === 0 && this.#partOf(block, range)) || block
      found.push(wanted)
      bytes += wanted.meteredBytes
      records += wanted.endSeqNum - wanted.firstSeqNum
      if (bytes >= bytesMax || records >= recordsMax) break
    }
    return found
  }

  /** When the next block expires. */
  get expiresAt(): number | undefined {
    return this.#expiresNext?.expiresAt ?? undefined
  }

  /** When the first block was trimmed; undefined if it was not. */
  get trimmedAt(): number | undefined {
    const first = this.#blocks.first()
    return first && this.current.trims.find(({ point }) => first.endSeqNum <= point)?.at
  }

  /** Frees the block that expires next, or stores its extended expiry. Returns whether it was freed. */
  freeExpired(now: number): boolean {
    const block = this.#expiresNext!
    const expiresAt = extendedExpiry(block, this.current.extensions)
    if (isExpired(expiresAt, now)) this.#free(block)
    else this.#extend(block, expiresAt)
    return isExpired(expiresAt, now)
  }

  /** Frees the first block. */
  freeFirst(): void {
    this.#free(this.#blocks.first()!)
  }

  /** The part of the first block of a read that is wanted; undefined if it is read whole. */
  #partOf(block: StoredBlock, range: ReadRange): StoredBlock | undefined {
    if (block.data.length <= PAGE_BYTES || !wantsPart(block, range)) return undefined
    const pages = wantedPages(knownPages(block), range)
    const [first, last] = [pages[0], pages.at(-1)]
    if (first === undefined || last === undefined) return undefined
    const data = block.data.subarray(first.offset, last.offset + last.bytes)
    return cutRecords(data, first.firstSeqNum, block.expiresAt, range)
  }

  /** The next block, if it expires at all. */
  get #expiresNext(): StoredBlock | undefined {
    return (this.#expiring ?? this.#blocks).first()
  }

  #extend(block: StoredBlock, expiresAt: number | null): void {
    // It may expire after later blocks now.
    this.#expiring ??= this.#byExpiry()
    const extended = { ...block, expiresAt }
    this.#blocks.delete(block)
    this.#blocks.add(extended)
    this.#expiring.delete(block)
    if (expiresAt !== null) this.#expiring.add(extended)
  }

  #byExpiry(): OrderedList<StoredBlock> {
    const list = new OrderedList<StoredBlock>(byExpiry)
    for (const block of this.#blocks.from(() => true)) if (block.expiresAt !== null) list.add(block)
    return list
  }

  #free(block: StoredBlock): void {
    this.#blocks.delete(block)
    this.#meteredBytes -= block.meteredBytes
    if (block.expiresAt !== null) this.#expiring?.delete(block)
    if (this.#arena?.wastes(this.#meteredBytes)) this.#copyBlocks()
  }

  #copyBlocks(): void {
    const blocks = [...this.#blocks.from(() => true)]
    for (const block of blocks) {
      const copy = copyBlock(block)
      this.#blocks.delete(block)
      this.#blocks.add(copy)
    }
    this.#expiring &&= this.#byExpiry()
    this.#arena = undefined
  }
}

/** The pages of blocks that were read in part: finding them visits every record. */
const PAGES = new WeakMap<StoredBlock, readonly BlockPage[]>()

function knownPages(block: StoredBlock): readonly BlockPage[] {
  let pages = PAGES.get(block)
  if (pages === undefined) {
    pages = pagesOf(block, PAGE_BYTES)
    PAGES.set(block, pages)
  }
  return pages
}

function bySeqNum(a: StoredBlock, b: StoredBlock): number {
  return a.firstSeqNum - b.firstSeqNum
}

function byExpiry(a: StoredBlock, b: StoredBlock): number {
  return a.expiresAt! - b.expiresAt! || a.firstSeqNum - b.firstSeqNum
}

/** Copies a block. Also keeps a small block from retaining the large buffer that it is a view of. */
function copyBlock(block: StoredBlock): StoredBlock {
  return {
    firstSeqNum: block.firstSeqNum,
    endSeqNum: block.endSeqNum,
    firstTimestamp: block.firstTimestamp,
    lastTimestamp: block.lastTimestamp,
    meteredBytes: block.meteredBytes,
    expiresAt: block.expiresAt,
    // Not `slice`, which returns a view for a Node `Buffer`.
    data: new Uint8Array(block.data),
  }
}

/** The logs that have something to free, by time, so that finding those that are due examines no others. */
class Deadlines {
  readonly #member: 'expiryDue' | 'trimDue'
  readonly #order: OrderedList<MemoryLog>

  /** Keeps the time of a log in this member of the log. */
  constructor(member: 'expiryDue' | 'trimDue') {
    this.#member = member
    this.#order = new OrderedList((a, b) => a[member]! - b[member]! || a.serial - b.serial)
  }

  /** Sets the time of a log, or removes the log if the time is undefined. */
  set(log: MemoryLog, time: number | undefined): void {
    const member = this.#member
    if (log[member] === time) return
    if (log[member] !== undefined) this.#order.delete(log)
    log[member] = time
    if (time !== undefined) this.#order.add(log)
  }

  /** Returns the log with the earliest time if that is at or before `now`. */
  due(now: number): MemoryLog | undefined {
    const log = this.#order.first()
    return log !== undefined && log[this.#member]! <= now ? log : undefined
  }
}
