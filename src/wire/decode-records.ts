import { commandOf } from '../model/command.ts'
import type { AppendAck } from '../model/info.ts'
import { READ_RECORDS_MAX } from '../model/limits.ts'
import { STREAM_START, type StreamTail } from '../model/position.ts'
import {
  type Header,
  meteredBytesOf,
  type SequencedRecord,
  type TextRecord,
  textRecord,
} from '../model/record.ts'
import {
  BlockReader,
  TAG_BODY,
  TAG_HEADER,
  TAG_NAME,
  TAG_RECORD,
  TAG_SEQ_NUM,
  TAG_TIMESTAMP,
  TAG_VALUE,
} from '../storage/block-codec.ts'
import { type BatchRecords, ReadBatch } from '../storage/record-batch.ts'
import { Malformed } from './json.ts'

/** Records that a client received. They belong to one reader, so nothing is copied. */
class ReceivedRecords implements BatchRecords {
  readonly records: readonly SequencedRecord[]
  #text: readonly TextRecord[] | undefined

  constructor(records: readonly SequencedRecord[]) {
    this.records = records
  }

  get text(): readonly TextRecord[] {
    this.#text ??= this.records.map(textRecord)
    return this.#text
  }

  get copy(): ReceivedRecords {
    return this
  }

  /** Throws: only the engine stores and sends blocks. */
  get data(): never {
    throw new TypeError('received records have no block')
  }

  of(records: readonly SequencedRecord[]): ReceivedRecords {
    return new ReceivedRecords(records)
  }
}

/** The records of a response and, if it has one, the tail of the stream. */
export interface ReceivedBatch {
  readonly records: readonly SequencedRecord[]
  readonly tail: StreamTail | undefined
}

const TAG_TAIL = (2 << 3) | 2
const TAG_CLOSED = 15 << 3
const TAG_START = (1 << 3) | 2
const TAG_END = (2 << 3) | 2
const TAG_ACK_TAIL = (3 << 3) | 2

/**
 * Decodes a `ReadBatch` message (docs/protocol.md "Protobuf messages") with views of `bytes`. Unknown fields
 * are skipped. Throws {@link Malformed}.
 */
export function decodeReadBatch(bytes: Uint8Array): ReceivedBatch {
  return decode(bytes, (reader) => {
    const records: SequencedRecord[] = []
    let tail: StreamTail | undefined
    eachField(reader, bytes.length, (tag) => {
      if (tag === TAG_RECORD) records.push(readRecord(reader))
      else if (tag === TAG_TAIL) tail = readPosition(reader)
      else return false
      if (records.length > READ_RECORDS_MAX) throw tooManyRecords()
      return true
    })
    return { records, tail }
  })
}

/** Decodes an `AppendAck` message. Throws {@link Malformed}. */
export function decodeAppendAck(bytes: Uint8Array): AppendAck {
  return decode(bytes, (reader) => {
    let [start, end, tail] = [STREAM_START, STREAM_START, STREAM_START]
    eachField(reader, bytes.length, (tag) => {
      if (tag === TAG_START) start = readPosition(reader)
      else if (tag === TAG_END) end = readPosition(reader)
      else if (tag === TAG_ACK_TAIL) tail = readPosition(reader)
      else return false
      return true
    })
    return { start, end, tail }
  })
}

/** Makes a batch of records that were received. */
export function batchOf({ records, tail }: ReceivedBatch): ReadBatch {
  let meteredBytes = 0
  for (const { headers, body } of records) meteredBytes += meteredBytesOf(headers, body)
  const summary = { count: records.length, meteredBytes, lastSeqNum: records.at(-1)?.seqNum ?? -1 }
  return new ReadBatch(new ReceivedRecords(records), summary, tail)
}

function decode<Message>(bytes: Uint8Array, read: (reader: BlockReader) => Message): Message {
  try {
    return read(new BlockReader(bytes))
  } catch (error) {
    if (error instanceof RangeError) throw new Malformed('a protobuf message is malformed')
    throw error
  }
}

/** Reads the fields up to `end`. `read` returns false for a field that it does not know. */
function eachField(reader: BlockReader, end: number, read: (tag: number) => boolean): void {
  while (reader.offset < end) {
    const tag = reader.varint()
    if (!read(tag)) skipField(reader, tag)
  }
  reader.assertAt(end)
}

function skipField(reader: BlockReader, tag: number): void {
  const type = tag & 7
  if (type === 2) reader.skipBytes()
  else if (type === 1 || type === 5) for (let left = type === 1 ? 8 : 4; left > 0; left--) reader.byte()
  else if (type !== 0) throw new RangeError('unknown wire type')
  // A varint of an unknown field may be a negative number, which takes ten bytes.
  else
    for (let left = 10; reader.byte() >= 0x80; left--) if (left === 1) throw new RangeError('a long varint')
}

function readRecord(reader: BlockReader): SequencedRecord {
  const end = reader.end()
  let seqNum = 0
  let timestamp = 0
  let headers: Header[] | undefined
  let body: Uint8Array = NO_BYTES
  eachField(reader, end, (tag) => {
    if (tag === TAG_SEQ_NUM) seqNum = reader.varint()
    else if (tag === TAG_TIMESTAMP) timestamp = reader.varint()
    else if (tag === TAG_BODY) body = reader.bytes()
    else if (tag === TAG_HEADER) {
      headers ??= []
      headers.push(readHeader(reader))
    } else return false
    return true
  })
  return withCommand(seqNum, timestamp, headers ?? NO_HEADERS, body)
}

const NO_BYTES: Uint8Array = new Uint8Array(0)
const NO_HEADERS: readonly Header[] = []

function readHeader(reader: BlockReader): Header {
  const end = reader.end()
  let name: Uint8Array = NO_BYTES
  let value: Uint8Array = NO_BYTES
  eachField(reader, end, (tag) => {
    if (tag === TAG_NAME) name = reader.bytes()
    else if (tag === TAG_VALUE) value = reader.bytes()
    else return false
    return true
  })
  return [name, value]
}

/**
 * Reads a position without a callback, which would cost more than the rest: an append session reads three for
 * each batch.
 */
function readPosition(reader: BlockReader): StreamTail {
  const end = reader.end()
  let seqNum = 0
  let timestamp = 0
  let closed = 0
  while (reader.offset < end) {
    const tag = reader.varint()
    if (tag === TAG_SEQ_NUM) seqNum = reader.varint()
    else if (tag === TAG_TIMESTAMP) timestamp = reader.varint()
    else if (tag === TAG_CLOSED) closed = reader.varint()
    else skipField(reader, tag)
  }
  reader.assertAt(end)
  return closed === 0 ? { seqNum, timestamp } : { seqNum, timestamp, closed: true }
}

/** Makes a record, with the command that it is, if any. */
export function withCommand(
  seqNum: number,
  timestamp: number,
  headers: readonly Header[],
  body: Uint8Array,
): SequencedRecord {
  const command = headers.length === 1 ? commandOf(headers, body) : undefined
  return command === undefined
    ? { seqNum, timestamp, headers, body }
    : { seqNum, timestamp, headers, body, command }
}

/** The problem of a batch that no server sends. */
export function tooManyRecords(): Malformed {
  return new Malformed(`a batch has more than ${READ_RECORDS_MAX} records`)
}
