import type { RetentionExtension } from '../../../../src/core/retention.ts'
import type { Head } from '../../../../src/storage/contract.ts'
import { withWriteStateChange, writeStateChange } from '../../../../src/storage/heads.ts'
import { RecentMap } from '../../../../src/storage/recent-map.ts'
import { ByteReader, ByteWriter } from '../files/bytes.ts'
import {
  readExtensions,
  readHead,
  readList,
  readRun,
  readWriteStateChange,
  writeExtensions,
  writeHead,
  writeRun,
  writeWriteStateChange,
} from './field-codec.ts'
import { hashBucket, type IdHash, IdHashes, idHash } from './id-hashes.ts'
import { Log, nextTrimOf } from './log.ts'
import { earliestExpiry, liveFromOf, Run, type RunFacts, type Segment } from './segment.ts'
import {
  itemAt,
  itemsIn,
  itemsOf,
  lowestIndex,
  NumberList,
  type PagePlace,
  PagePlaces,
  type PageReader,
  type StoredPage,
  StoredPages,
} from './stored-pages.ts'

/** The pages of logs, and the buckets of their hashes, as the index describes them. */
export class LogPlaces {
  readonly frames = new PagePlaces()
  readonly facts = new LogPageList()
  /** The frames of the hashes, one for each bucket; of an empty bucket, without bytes. */
  readonly buckets = new PagePlaces()

  add(frame: PagePlace, first: number, due: number): void {
    this.frames.add(frame)
    this.facts.push(first, due)
  }
}

/** The entries of an index for each page of logs. */
class LogPageList {
  /** Numbers of the first logs. */
  readonly firsts = new NumberList()
  /** The earliest time at which something in each may have to be freed, in ms; infinite for never. */
  readonly dues = new NumberList()

  push(first: number, due: number): void {
    this.firsts.push(first)
    this.dues.push(due)
  }
}

/** How many decoded buckets stay in memory: those of a million logs, in 16 MiB. */
const RECENT_BUCKETS = 2048

/** The logs as a checkpoint stores them, ascending by number. */
export class StoredLogs {
  readonly #pages: StoredPages
  readonly #facts: LogPageList
  readonly #read: PageReader | undefined
  readonly #buckets: PagePlaces | undefined
  /** The buckets that were read last; see {@link decodeBucket}. */
  readonly #recentBuckets = new RecentMap<number, Float64Array>(RECENT_BUCKETS)
  /** The ids of the logs that {@link add} added. */
  readonly #ids = new IdHashes()
  #lastNumber: number

  /**
   * @param places The pages and buckets that are read on use.
   * @param lastNumber The greatest number of a log in them.
   */
  constructor(read?: PageReader, places?: LogPlaces, lastNumber = 0) {
    this.#read = read
    this.#pages = new StoredPages(logsIn, logPage, read, places?.frames)
    this.#facts = places?.facts ?? new LogPageList()
    this.#buckets = places?.buckets
    this.#lastNumber = lastNumber
  }

  get pageCount(): number {
    return this.#pages.count
  }

  /** The number of logs that {@link add} added. */
  get added(): number {
    return this.#ids.size
  }

  /**
   * Adds the items of a frame, and keeps the bytes. Throws `RangeError` if they are malformed or not in
   * order.
   */
  add(bytes: Buffer): void {
    const page = logPage(bytes)
    if (itemsOf(page) === 0) return
    let due = Number.POSITIVE_INFINITY
    let before = this.#lastNumber
    for (const item of itemsIn(page)) {
      const fields = new ByteReader(item)
      const key = readLogKey(fields)
      if (key.number <= before) throw new RangeError('logs are not in order')
      before = key.number
      due = Math.min(due, key.due)
      this.#ids.add(fields.raw(fields.varint()), key.number)
    }
    this.#lastNumber = before
    this.#facts.push(logNumber(itemAt(page, 0)), due)
    this.#pages.add(page)
  }

  /** The greatest number of a log, or a greater one; 0 without any. */
  get lastNumber(): number {
    return this.#lastNumber
  }

  page(index: number): StoredPage | Promise<StoredPage> {
    return this.#pages.at(index)
  }

  /** The pages in which something may have to be freed at this time. */
  *duePages(time: number): Generator<number, void, undefined> {
    const { dues } = this.#facts
    for (let index = 0; index < dues.length; index++) if (dues.at(index) <= time) yield index
  }

  /** The index of the page in which a log would be; 0 without pages. */
  pageIndexOf(number: number): number {
    const { firsts } = this.#facts
    return Math.max(lowestIndex(firsts.length, (i) => firsts.at(i) > number) - 1, 0)
  }

  withNumber(number: number, id?: Buffer): Buffer | undefined | Promise<Buffer | undefined> {
    if (this.pageCount === 0) return undefined
    return this.#pages.find(this.pageIndexOf(number), (items) => findLog(items, number, id))
  }

  async withId(id: string): Promise<Buffer | undefined> {
    if (this.pageCount === 0) return undefined
    const wanted = Buffer.from(id)
    const numbers = this.#numbersOf(wanted)
    for (const number of numbers instanceof Promise ? await numbers : numbers) {
      const found = this.withNumber(number, wanted)
      const item = found instanceof Promise ? await found : found
      if (item !== undefined) return item
    }
    return undefined
  }

  #numbersOf(id: Buffer): readonly number[] | Promise<readonly number[]> {
    const buckets = this.#buckets
    if (buckets === undefined) return this.#ids.numbersOf(id)
    const hash = idHash(id)
    const index = hashBucket(hash, Math.log2(buckets.count))
    const recent = this.#recentBuckets.get(index)
    if (recent !== undefined) return numbersWithHash(recent, hash)
    const place = buckets.at(index)
    if (place.bytes === 0) return []
    const keep = (pairs: Float64Array): number[] => {
      this.#recentBuckets.set(index, pairs)
      return numbersWithHash(pairs, hash)
    }
    const pairs = this.#read!.find(place, decodeBucket)
    return pairs instanceof Promise ? pairs.then(keep) : keep(pairs)
  }
}

/** Writes the hashes of a bucket. */
export function writeHashes(writer: ByteWriter, entries: readonly IdHash[]): void {
  for (const { hash, number } of entries) {
    writer.u32(hash)
    writer.varint(number)
  }
}

/** Decodes a bucket: hashes alternate with the numbers of their logs. */
function decodeBucket(payload: Buffer): Float64Array {
  const fields = new ByteReader(payload, 1)
  const pairs: number[] = []
  while (fields.left > 0) pairs.push(fields.u32(), fields.varint())
  return new Float64Array(pairs)
}

/** Returns the numbers of the logs whose id has this hash. */
function numbersWithHash(pairs: Float64Array, hash: number): number[] {
  const numbers: number[] = []
  let i = 2 * lowestIndex(pairs.length / 2, (index) => pairs[2 * index]! >= hash)
  for (; pairs[i] === hash; i += 2) numbers.push(pairs[i + 1]!)
  return numbers
}

/** Returns the items in the payload of a frame, without its letter, as a view. */
function logsIn(payload: Buffer): Buffer {
  return payload.subarray(1)
}

/** Returns a copy of the item with this number, and with this id if one is given. */
function findLog(items: Buffer, number: number, id?: Buffer): Buffer | undefined {
  const fields = new ByteReader(items)
  while (fields.left > 0) {
    const start = fields.offset
    const key = readLogKey(fields)
    if (key.number < number) {
      fields.skip(key.end - fields.offset)
      continue
    }
    const isFound = key.number === number && (id === undefined || fields.raw(fields.varint()).equals(id))
    return isFound ? Buffer.from(items.subarray(start, key.end)) : undefined
  }
  return undefined
}

/** The page with these items. Throws `RangeError` if they are malformed. */
export function logPage(bytes: Buffer): StoredPage {
  const starts: number[] = []
  const fields = new ByteReader(bytes)
  while (fields.left > 0) {
    starts.push(fields.offset)
    const { end } = readLogKey(fields)
    fields.skip(end - fields.offset)
  }
  starts.push(bytes.length)
  return { bytes, starts: Uint32Array.from(starts) }
}

export function logNumber(item: Buffer): number {
  return readLogKey(new ByteReader(item)).number
}

const NO_EXTENSIONS: readonly RetentionExtension[] = []

/** A log as a checkpoint stores it. */
export interface LogFacts {
  readonly number: number
  readonly id: string
  readonly head: Head
  readonly runs: readonly RunFacts[]
  /** Everything that could be freed below this trim point is. 0 by default. Only the due time tells of it. */
  readonly reclaimedPoint?: number | undefined
}

/** The fields that can be read without decoding the log. */
interface LogKey {
  /** Offset of its end. */
  readonly end: number
  readonly number: number
  /** The earliest time at which something may have to be freed, in milliseconds; infinite for never. */
  readonly due: number
}

export function writeLog(writer: ByteWriter, log: LogFacts): void {
  const { number, id, head, runs } = log
  const fields = new ByteWriter(256)
  fields.varint(number)
  fields.optional(dueOf(log))
  fields.string(id)
  writeHead(fields, head)
  fields.varint(runs.length)
  for (const run of runs) writeRun(fields, run)
  const { extensions = [] } = head
  const writeState = writeStateChange(undefined, head.writeState)
  if (extensions.length > 0 || writeState !== undefined) writeExtensions(fields, extensions)
  if (writeState !== undefined) writeWriteStateChange(fields, writeState)
  writer.varint(fields.length)
  writer.raw(fields.bytes)
}

/** Reads the key of an item. Throws `RangeError` if the key or the item exceeds its bounds. */
export function readLogKey(fields: ByteReader): LogKey {
  const length = fields.varint()
  const end = fields.offset + length
  const number = fields.varint()
  const due = fields.optional() ?? Number.POSITIVE_INFINITY
  if (fields.offset > end || end > fields.offset + fields.left) throw new RangeError('a log is malformed')
  return { end, number, due }
}

/** Throws `RangeError` if the item is malformed or refers to a segment that does not exist. */
export function readLog(item: Buffer, segments: ReadonlyMap<number, Segment>): Log {
  const fields = new ByteReader(item)
  const { number } = readLogKey(fields)
  const log = new Log(number, fields.string(), readHead(fields))
  const runs = readList(fields, () => {
    const facts = readRun(fields)
    const home = segments.get(facts.segment)
    if (home === undefined) throw new RangeError(`segment ${facts.segment} does not exist`)
    return new Run(home, facts)
  })
  const extensions = fields.left > 0 ? readExtensions(fields) : NO_EXTENSIONS
  if (extensions.length > 0) log.head = { ...log.head, extensions }
  if (fields.left > 0) {
    const writeState = withWriteStateChange(undefined, readWriteStateChange(fields))
    log.head = { ...log.head, writeState }
  }
  if (fields.left > 0) throw new RangeError('a log is longer than its fields')
  if (runs.length > 0) log.runs = runs
  for (const { meteredBytes } of runs) log.meteredBytes += meteredBytes
  log.updateNextExpiry()
  return log
}

/**
 * Returns the earliest time at which something in a log has to be freed; null for never. A log in a
 * checkpoint has no blocks in journals. What was examined without effect is not due again: a trim often ends
 * within a block.
 */
export function dueOf({ head: { trims, extensions }, runs, reclaimedPoint }: LogFacts): number | null {
  const [first] = runs
  let due = first && nextTrimOf(trims, liveFromOf(first), reclaimedPoint)
  for (const run of runs) {
    const keptUntil = run instanceof Run ? run.keptUntil : 0
    const expiry = Math.max(earliestExpiry(run, extensions), keptUntil)
    if (expiry < Number.POSITIVE_INFINITY) due = Math.min(due ?? expiry, expiry)
  }
  return due ?? null
}
