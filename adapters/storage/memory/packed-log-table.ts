import { lossyTextOf, utf8, utf8Length } from '../../../src/model/bytes.ts'
import type { Head, ReadRange, StoredBlock } from '../../../src/storage/contract.ts'
import type { MemoryLog } from './log.ts'
import { FieldReader, FieldWriter } from './packed-fields.ts'
import { bytesOfId, ID_BYTES, idOfBytes } from './packed-ids.ts'
import { PackedTable } from './packed-table.ts'

/**
 * Larger logs, and logs with more blocks, are not packed: the objects of a log are few then compared with its
 * records, or take long to make again.
 */
const PACKED_BYTES_MAX = 8_192
const PACKED_BLOCKS_MAX = 128

/** The end of append ids of an engine. */
const COUNT = /^[1-9][0-9]{0,14}$/

/** The most beginnings of append ids that are shared: each engine has its own. */
const PREFIXES_MAX = 256

/** No byte of UTF-8. Ends the keys of other ids than those that the engine draws. */
const NO_TEXT = 0xff

const WHOLE_LOG: ReadRange = {
  from: { seqNum: 0 },
  endSeqNum: Number.POSITIVE_INFINITY,
  bytesMax: Number.POSITIVE_INFINITY,
}

const NO_TRIMS: Head['trims'] = Object.freeze([])

/** The fields that few heads have. */
type RareFields = Partial<Pick<Head, 'fencingToken' | 'appendId' | 'trims' | 'extensions' | 'writeState'>>

/** Makes the object of a log. */
export type NewLog = (id: string, head: Head) => MemoryLog

/** Packed logs: an entry of a {@link PackedTable} for each. */
export class PackedLogTable {
  readonly #table = new PackedTable()
  readonly #writer = new FieldWriter()
  readonly #newLog: NewLog
  /** The first one is that of the id of no append. */
  readonly #prefixes = ['']

  constructor(newLog: NewLog) {
    this.#newLog = newLog
  }

  /** Returns the slot of a log; 0 if it is not packed. */
  find(id: string): number {
    return this.#table.find(keyOf(id))
  }

  /** Returns the id of the log in a slot. */
  idAt(slot: number): string {
    return idOfKey(this.#table.key(slot))
  }

  /** Returns the number that the log in a slot was added with. */
  packingOf(slot: number): number {
    return new FieldReader(this.#table.value(slot)).number()
  }

  /** Removes the log in a slot. Returns it with objects of its own. */
  take(id: string, slot: number): MemoryLog {
    const fields = new FieldReader(this.#table.value(slot))
    fields.number()
    const serial = fields.number()
    const head = this.#readHead(fields)
    const log = this.#newLog(id, head)
    log.serial = serial
    // Copies the data.
    while (!fields.isAtEnd) log.append(readBlock(fields, head.tail.timestamp), head)
    this.#table.delete(keyOf(id))
    return log
  }

  /** Adds a log, with a number. Returns its slot; undefined if it is too large or unusual. */
  put(log: MemoryLog, packing: number): number | undefined {
    const { id } = log
    // The table has no ids with lone surrogates.
    if (log.meteredBytes > PACKED_BYTES_MAX || utf8Length(id) !== id.length) return undefined
    const blocks = log.read(WHOLE_LOG)
    if (blocks.length > PACKED_BLOCKS_MAX) return undefined
    const fields = this.#writer
    fields.number(packing)
    fields.number(log.serial)
    this.#writeHead(log.current)
    for (const block of blocks) writeBlock(fields, block, log.current.tail.timestamp)
    const value = fields.take()
    if (value === undefined || value.length > 2 * PACKED_BYTES_MAX) return undefined
    return this.#table.set(keyOf(id), value)
  }

  #writeHead(head: Head): void {
    const { epoch, tail, trimPoint, fencingToken, appendId, appendedAt, trims, extensions, writeState } = head
    const fields = this.#writer
    fields.number(epoch)
    fields.number(tail.seqNum)
    fields.number(tail.timestamp)
    fields.number(trimPoint)
    fields.signed(appendedAt - tail.timestamp)
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
    const suffix = prefix === undefined ? '' : appendId.slice(length)
    const isCount = COUNT.test(suffix)
    fields.number(isCount ? Number(suffix) + 1 : 0)
    if (!isCount) fields.text(suffix)
    // JSON, because it keeps all texts as they are.
    fields.text(Object.keys(rare).length === 0 ? '' : JSON.stringify(rare))
  }

  #readHead(fields: FieldReader): Head {
    const epoch = fields.number()
    const tail = { seqNum: fields.number(), timestamp: fields.number() }
    const trimPoint = fields.number()
    const appendedAt = tail.timestamp + fields.signed()
    const prefix = this.#prefixes[fields.number()]!
    const count = fields.number()
    const appendId = prefix + (count > 0 ? String(count - 1) : fields.text())
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
}

/** Times are relative to that of the tail. */
function writeBlock(fields: FieldWriter, block: StoredBlock, tailTimestamp: number): void {
  const { firstSeqNum, endSeqNum, firstTimestamp, lastTimestamp, meteredBytes, expiresAt, data } = block
  fields.number(firstSeqNum)
  fields.number(endSeqNum - firstSeqNum)
  fields.signed(tailTimestamp - lastTimestamp)
  fields.number(lastTimestamp - firstTimestamp)
  fields.number(meteredBytes)
  fields.number(expiryField(expiresAt ?? Number.POSITIVE_INFINITY))
  fields.data(data)
}

function readBlock(fields: FieldReader, tailTimestamp: number): StoredBlock {
  const firstSeqNum = fields.number()
  const endSeqNum = firstSeqNum + fields.number()
  const lastTimestamp = tailTimestamp - fields.signed()
  const firstTimestamp = lastTimestamp - fields.number()
  const meteredBytes = fields.number()
  const expiresAt = expiryOf(fields.number())
  const data = fields.data()
  return { firstSeqNum, endSeqNum, firstTimestamp, lastTimestamp, meteredBytes, expiresAt, data }
}

/** A number for a time, which may be infinite. */
function expiryField(time: number): number {
  return time === Number.POSITIVE_INFINITY ? 0 : time + 1
}

/** Null: never. */
function expiryOf(field: number): number | null {
  return field === 0 ? null : field - 1
}

/** The key of a log: the bytes of an id that the engine has drawn. Other keys have another length. */
function keyOf(id: string): Uint8Array {
  const bytes = bytesOfId(id)
  if (bytes !== undefined) return bytes
  const text = utf8(id)
  const key = new Uint8Array(text.length + (text.length + 1 === ID_BYTES ? 2 : 1)).fill(NO_TEXT)
  key.set(text)
  return key
}

function idOfKey(key: Uint8Array): string {
  return key.length === ID_BYTES ? idOfBytes(key) : lossyTextOf(key.subarray(0, key.indexOf(NO_TEXT)))
}
