import type { AppendBatch, AppendConditions } from '../model/append-input.ts'
import { utf8 } from '../model/bytes.ts'
import type { AppendRecord, Header } from '../model/record.ts'
import { TAG_NAME, TAG_RECORD, TAG_VALUE, varintSize, writeVarint } from '../storage/block-codec.ts'

/** Field numbers of `AppendInput` and `AppendRecord` (docs/protocol.md "Protobuf messages"). */
const TAG_MATCH_SEQ_NUM = 2 << 3
const TAG_FENCING_TOKEN = (3 << 3) | 2
const TAG_TIMESTAMP = 1 << 3
const TAG_HEADER = (2 << 3) | 2
const TAG_BODY = (3 << 3) | 2

/**
 * Encodes an `AppendInput` message: the records of a batch, under these conditions.
 *
 * @param allocate Returns the memory for the message, of exactly this length.
 */
export function encodeAppendInput(
  { records }: Pick<AppendBatch, 'records'>,
  { matchSeqNum, fencingToken }: AppendConditions,
  allocate: (length: number) => Uint8Array = (length) => new Uint8Array(length),
): Uint8Array {
  const token = fencingToken === undefined ? undefined : utf8(fencingToken)
  const sizes = new Array<number>(records.length)
  let length = 0
  for (let i = 0; i < records.length; i++) {
    const size = recordSize(records[i]!)
    sizes[i] = size
    length += 1 + varintSize(size) + size
  }
  // Conditions are present or absent, so 0 and '' are written too.
  if (matchSeqNum !== undefined) length += 1 + varintSize(matchSeqNum)
  if (token !== undefined) length += fieldSize(token)
  const writer = new Writer(allocate(length))
  for (let i = 0; i < records.length; i++) {
    writer.varint(TAG_RECORD, sizes[i]!)
    writer.record(records[i]!)
  }
  if (matchSeqNum !== undefined) writer.varint(TAG_MATCH_SEQ_NUM, matchSeqNum)
  if (token !== undefined) writer.bytes(TAG_FENCING_TOKEN, token)
  return writer.buffer
}

class Writer {
  readonly buffer: Uint8Array
  #end = 0

  constructor(buffer: Uint8Array) {
    this.buffer = buffer
  }

  record({ timestamp, headers, body }: AppendRecord): void {
    if (timestamp !== undefined) this.varint(TAG_TIMESTAMP, timestamp)
    if (headers.length > 0) this.#headers(headers)
    this.#bytesUnlessEmpty(TAG_BODY, body)
  }

  #headers(headers: readonly Header[]): void {
    for (const header of headers) {
      this.varint(TAG_HEADER, headerSize(header))
      this.#bytesUnlessEmpty(TAG_NAME, header[0])
      this.#bytesUnlessEmpty(TAG_VALUE, header[1])
    }
  }

  varint(tag: number, value: number): void {
    this.buffer[this.#end] = tag
    this.#end = writeVarint(this.buffer, this.#end + 1, value)
  }

  bytes(tag: number, value: Uint8Array): void {
    this.varint(tag, value.length)
    this.buffer.set(value, this.#end)
    this.#end += value.length
  }

  #bytesUnlessEmpty(tag: number, value: Uint8Array): void {
    if (value.length > 0) this.bytes(tag, value)
  }
}

function recordSize({ timestamp, headers, body }: AppendRecord): number {
  let size = timestamp === undefined ? 0 : 1 + varintSize(timestamp)
  // Iterating over the empty headers of most records would allocate more than the rest does.
  if (headers.length > 0) size += headersSize(headers)
  return size + sizeUnlessEmpty(body)
}

function headersSize(headers: readonly Header[]): number {
  let size = 0
  for (const header of headers) {
    const inner = headerSize(header)
    size += 1 + varintSize(inner) + inner
  }
  return size
}

function headerSize([name, value]: Header): number {
  return sizeUnlessEmpty(name) + sizeUnlessEmpty(value)
}

function sizeUnlessEmpty(bytes: Uint8Array): number {
  return bytes.length === 0 ? 0 : fieldSize(bytes)
}

function fieldSize({ length }: Uint8Array): number {
  return 1 + varintSize(length) + length
}
