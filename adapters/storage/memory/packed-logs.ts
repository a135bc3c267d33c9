import { lossyTextOf, utf8Length } from '../../../src/model/bytes.ts'
import type { Head, StoredBlock } from '../../../src/storage/contract.ts'
import { type MemoryLog, PACKED_BYTES_MAX, type PackedLog } from './log.ts'
import { FieldReader, FieldWriter } from './packed-fields.ts'
import { PackedTable } from './packed-table.ts'

/** The most beginnings of append ids that are shared: each engine has its own. */
const PREFIXES_MAX = 256

/** The number of fields before the two texts that precede the blocks. */
const NUMBERS_BEFORE_TEXTS = 9

const NO_TRIMS: Head['trims'] = Object.freeze([])

/** What few heads have. */
type RareFields = Partial<Pick<Head, 'fencingToken' | 'appendId' | 'trims' | 'extensions' | 'writeState'>>

/** Idle logs with few records, without an object for each, in a {@link PackedTable}. */
export class PackedLogs {
  readonly #table = new PackedTable()
  readonly #writer = new FieldWriter()
  /** The first one is that of the id of no append. */
  readonly #prefixes = ['']

  /** Returns a packed log. Its entry stays until it is packed again or deleted: the log refers to it. */
  find(id: string): PackedLog | undefined {
    const slot = this.#table.find(id)
    if (slot === 0) return undefined
    const fields = new FieldReader(this.#table.value(slot))
    const meteredBytes = fields.number()
    const number = fields.number()
    const lastExpiry = expiryOf(fields.number()) ?? Number.POSITIVE_INFINITY
    const head = this.#readHead(fields)
    return { id, number, head, meteredBytes, lastExpiry, older: () => this.#blocks(slot) }
  }

  meteredBytes(id: string): number {
    const slot = this.#table.find(id)
    return slot === 0 ? 0 : new FieldReader(this.#table.value(slot)).number()
  }

  /** Returns the id of the log at a place. */
  idAt(place: number): string {
    return lossyTextOf(this.#table.key(place))
  }

  delete(id: string): void {
    this.#table.delete(id)
  }

  /** Packs a log. Returns its place; undefined if it is too large or unusual. */
  put(log: MemoryLog): number | undefined {
    const { packable } = log
    const isAscii = utf8Length(log.id) === log.id.length
    if (packable === undefined || !isAscii || log.meteredBytes > PACKED_BYTES_MAX) return undefined
    const { number, head, meteredBytes, lastExpiry, keepsOlder, newer } = packable
    const fields = this.#writer
    fields.number(meteredBytes)
    fields.number(number)
    fields.number(expiryField(lastExpiry))
    this.#writeHead(head)
    if (keepsOlder) fields.raw(this.#blockFields(this.#table.find(log.id)).rest())
    for (const block of newer) this.#writeBlock(block)
    const value = fields.take()
    if (value === undefined || value.length > 2 * PACKED_BYTES_MAX) return undefined
    return this.#table.set(log.id, value)
  }

  #writeHead(head: Head): void {
    const { epoch, tail, trimPoint, fencingToken, appendId, appendedAt, trims, extensions, writeState } = head
    const fields = this.#writer
    fields.number(epoch)
    fields.number(tail.seqNum)
    fields.number(tail.timestamp)
    fields.number(trimPoint)
    fields.number(appendedAt)
    const length = appendId.lastIndexOf(':') + 1
    const isAscii = utf8Length(appendId) === appendId.length
    const prefix = isAscii ? this.#prefixNumber(appendId.slice(0, length)) : undefined
    const rare: RareFields = {
      ...(fencingToken !== '' && { fencingToken }),
      ...(prefix === undefined && { appendId }),
      ...(trims.length > 0 && { trims }),
      ...(extensions !== undefined && { extensions }),
      ...(writeState !== undefined && { writeState }),
    }
    fields.number(prefix ?? 0)
    fields.text(prefix === undefined ? '' : appendId.slice(length))
    // JSON, because it keeps all texts as they are.
    fields.text(Object.keys(rare).length === 0 ? '' : JSON.stringify(rare))
  }

  #readHead(fields: FieldReader): Head {
    const epoch = fields.number()
    const tail = { seqNum: fields.number(), timestamp: fields.number() }
    const trimPoint = fields.number()
    const appendedAt = fields.number()
    const prefix = this.#prefixes[fields.number()]!
    const appendId = prefix + fields.text()
    const rare = fields.text()
    const head = { epoch, tail, trimPoint, fencingToken: '', appendId, appendedAt, trims: NO_TRIMS }
    return rare === '' ? head : { ...head, ...(JSON.parse(rare) as RareFields) }
  }

  /** The number of a beginning of append ids; undefined if it is not shared. */
  #prefixNumber(prefix: string): number | undefined {
    const known = this.#prefixes.indexOf(prefix)
    if (known >= 0) return known
    return this.#prefixes.length < PREFIXES_MAX ? this.#prefixes.push(prefix) - 1 : undefined
  }

  #writeBlock(block: StoredBlock): void {
    const { firstSeqNum, endSeqNum, firstTimestamp, lastTimestamp, meteredBytes, expiresAt, data } = block
    const fields = this.#writer
    fields.number(firstSeqNum)
    fields.number(endSeqNum - firstSeqNum)
    fields.number(firstTimestamp)
    fields.number(lastTimestamp - firstTimestamp)
    fields.number(meteredBytes)
    fields.number(expiryField(expiresAt ?? Number.POSITIVE_INFINITY))
    fields.data(data)
  }

  /** The blocks of a packed log. */
  #blocks(slot: number): StoredBlock[] {
    const fields = this.#blockFields(slot)
    const blocks: StoredBlock[] = []
    while (!fields.isAtEnd) {
      const firstSeqNum = fields.number()
      const endSeqNum = firstSeqNum + fields.number()
      const firstTimestamp = fields.number()
      const lastTimestamp = firstTimestamp + fields.number()
      const meteredBytes = fields.number()
      const expiresAt = expiryOf(fields.number())
      const data = fields.data()
      blocks.push({ firstSeqNum, endSeqNum, firstTimestamp, lastTimestamp, meteredBytes, expiresAt, data })
    }
    return blocks
  }

  #blockFields(slot: number): FieldReader {
    const fields = new FieldReader(this.#table.value(slot))
    for (let i = 0; i < NUMBERS_BEFORE_TEXTS; i++) fields.number()
    fields.data()
    fields.data()
    return fields
  }
}

/** A number for a time, which may be infinite. */
function expiryField(time: number): number {
  return time === Number.POSITIVE_INFINITY ? 0 : time + 1
}

/** Null: never. */
function expiryOf(field: number): number | null {
  return field === 0 ? null : field - 1
}
