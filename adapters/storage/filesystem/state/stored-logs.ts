import type { RetentionExtension } from '../../../../src/core/retention.ts'
import type { Head } from '../../../../src/storage/contract.ts'
import { withWriteStateChange, writeStateChange } from '../../../../src/storage/write-state-change.ts'
import { ByteReader, ByteWriter } from '../files/bytes.ts'
import {
  readExtensions,
  readHead,
  readList,
  readRun,
  writeExtensions,
  writeHead,
  writeRun,
} from './field-codec.ts'
import { Log, nextTrimOf } from './log.ts'
import { earliestExpiry, liveFromOf, Run, type RunFacts, type Segment } from './segment.ts'
import { itemAt, itemsOf, lowestIndex, type StoredPage } from './stored-pages.ts'
import { readWriteStateChange, writeWriteStateChange } from './write-state-codec.ts'

interface LogPage extends StoredPage {
  /** Position of its first log. */
  readonly first: number
  /** When something in it may have to be freed at the earliest, in milliseconds. */
  readonly due: number
}

/**
 * The logs as a checkpoint stores them, ascending by number. A position is an index into all of them.
 */
export class StoredLogs {
  readonly #pages: LogPage[] = []
  #size = 0
  /** Positions plus 1 by the hash of the id, with linear probing. Created on first use. */
  #positions: Uint32Array | undefined

  /** The number of logs. */
  get size(): number {
    return this.#size
  }

  /** The greatest number of a log; 0 without any. */
  get lastNumber(): number {
    return this.#size === 0 ? 0 : this.numberAt(this.#size - 1)
  }

  /**
   * Adds the items of a frame, and keeps the bytes. Throws `RangeError` if they are malformed or not in
   * order.
   */
  add(bytes: Buffer): void {
    const starts: number[] = []
    const fields = new ByteReader(bytes)
    let before = this.lastNumber
    let due = Number.POSITIVE_INFINITY
    while (fields.left > 0) {
      starts.push(fields.offset)
      const key = readLogKey(fields)
      if (key.number <= before) throw new RangeError('logs are not in order')
      before = key.number
      due = Math.min(due, key.due)
      fields.skip(key.end - fields.offset)
    }
    const first = this.#size
    this.#size += starts.length
    starts.push(bytes.length)
    this.#pages.push({ bytes, starts: Uint32Array.from(starts), first, due })
    this.#positions = undefined
  }

  item(position: number): Buffer {
    const page = this.#pages[lowestIndex(this.#pages.length, (i) => this.#pages[i]!.first > position) - 1]!
    return itemAt(page, position - page.first)
  }

  numberAt(position: number): number {
    return readLogKey(new ByteReader(this.item(position))).number
  }

  positionOf(number: number): number | undefined {
    const position = lowestIndex(this.#size, (i) => this.numberAt(i) >= number)
    return position < this.#size && this.numberAt(position) === number ? position : undefined
  }

  positionOfId(id: string): number | undefined {
    if (this.#size === 0) return undefined
    this.#positions ??= this.#indexIds()
    const wanted = Buffer.from(id)
    const mask = this.#positions.length - 1
    for (let slot = hashOf(wanted) & mask; ; slot = (slot + 1) & mask) {
      const position = this.#positions[slot]! - 1
      if (position < 0) return undefined
      if (this.#idAt(position).equals(wanted)) return position
    }
  }

  /** Iterates over the logs of which something may have to be freed at this time. */
  *due(time: number): Generator<number, void, undefined> {
    for (const page of this.#pages) {
      if (page.due > time) continue
      for (let i = 0; i < itemsOf(page); i++) {
        if (readLogKey(new ByteReader(itemAt(page, i))).due <= time) yield page.first + i
      }
    }
  }

  #idAt(position: number): Buffer {
    const fields = new ByteReader(this.item(position))
    readLogKey(fields)
    return fields.raw(fields.varint())
  }

  /** At most half of the slots are used. */
  #indexIds(): Uint32Array {
    const positions = new Uint32Array(2 ** Math.ceil(Math.log2(2 * this.#size)))
    const mask = positions.length - 1
    for (let position = 0; position < this.#size; position++) {
      let slot = hashOf(this.#idAt(position)) & mask
      while (positions[slot] !== 0) slot = (slot + 1) & mask
      positions[slot] = position + 1
    }
    return positions
  }
}

/** FNV-1a. */
function hashOf(bytes: Uint8Array): number {
  let hash = 0x811c9dc5
  for (const byte of bytes) hash = Math.imul(hash ^ byte, 0x01000193)
  return hash
}

const NO_EXTENSIONS: readonly RetentionExtension[] = []

/** A log as a checkpoint stores it. */
export interface LogFacts {
  readonly number: number
  readonly id: string
  readonly head: Head
  readonly runs: readonly RunFacts[]
}

/** What can be read without decoding the log. */
interface LogKey {
  /** Offset of its end. */
  readonly end: number
  readonly number: number
  /** When something may have to be freed at the earliest, in milliseconds; infinite for never. */
  readonly due: number
}

export function writeLog(writer: ByteWriter, { number, id, head, runs }: LogFacts): void {
  const fields = new ByteWriter(256)
  fields.varint(number)
  fields.optional(dueOf(head, runs))
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

export function readLogKey(fields: ByteReader): LogKey {
  const length = fields.varint()
  const end = fields.offset + length
  return { end, number: fields.varint(), due: fields.optional() ?? Number.POSITIVE_INFINITY }
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

/** A log in a checkpoint has no blocks in journals. */
function dueOf({ trims, extensions }: Head, runs: readonly RunFacts[]): number | null {
  const [first] = runs
  let due = first && nextTrimOf(trims, liveFromOf(first))
  for (const run of runs) {
    const expiry = earliestExpiry(run, extensions)
    if (expiry < Number.POSITIVE_INFINITY) due = Math.min(due ?? expiry, expiry)
  }
  return due ?? null
}
