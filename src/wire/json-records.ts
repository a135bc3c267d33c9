import { lossyTextOf } from '../model/bytes.ts'
import { READ_RECORDS_MAX } from '../model/limits.ts'
import type { StreamTail } from '../model/position.ts'
import type { Header, SequencedRecord } from '../model/record.ts'
import type { ReadBatch } from '../storage/record-batch.ts'
import { decodeBase64, encodeBase64 } from './base64.ts'
import { positionOf, type ReceivedBatch, tooManyRecords, withCommand } from './decode-records.ts'
import {
  integerOfJson,
  MalformedResponse,
  type ResponseObject,
  recordOf,
  responseArrayOf,
  textOfJson,
  unlessNull,
} from './response-json.ts'
import type { DataFormat } from './vendor-headers.ts'

type TextOf = (bytes: Uint8Array) => string

const TEXT_OF: Record<DataFormat, TextOf> = { raw: lossyTextOf, base64: encodeBase64 }
const texts = { raw: new WeakMap<ReadBatch, string>(), base64: new WeakMap<ReadBatch, string>() }

/**
 * The JSON form of a batch (docs/protocol.md "Unary reads"). Empty `headers` and `body` and an absent `tail`
 * are omitted. In raw format, bytes that are not UTF-8 become U+FFFD.
 */
export function readBatchJson({ records, tail }: ReadBatch, format: DataFormat): string {
  const textOf = TEXT_OF[format]
  const forms: object[] = []
  for (const record of records) forms.push(recordForm(record, textOf))
  return JSON.stringify({
    records: forms,
    tail: tail && { seq_num: tail.seqNum, timestamp: tail.timestamp, closed: tail.closed },
  })
}

/**
 * Does the same as {@link readBatchJson}, but once for each batch and format: readers of a live batch share
 * the result.
 */
export function sharedBatchJson(batch: ReadBatch, format: DataFormat): string {
  const known = texts[format].get(batch)
  if (known !== undefined) return known
  const text = readBatchJson(batch, format)
  texts[format].set(batch, text)
  return text
}

/** The order of the members is their order on the wire. */
function recordForm({ seqNum, timestamp, headers, body }: SequencedRecord, textOf: TextOf): object {
  return {
    seq_num: seqNum,
    timestamp,
    headers: headers.length === 0 ? undefined : headers.map(([name, value]) => [textOf(name), textOf(value)]),
    body: body.length === 0 ? undefined : textOf(body),
  }
}

/** `{"seq_num":…,"timestamp":…}` (docs/protocol.md "Stream position"). */
export function positionJson({ seqNum, timestamp, closed }: StreamTail): string {
  return `{"seq_num":${seqNum},"timestamp":${timestamp}${closed ? ',"closed":true' : ''}}`
}

/** The response to a tail check, and the body of a 416. */
export function tailJson(tail: StreamTail): string {
  return `{"tail":${positionJson(tail)}}`
}

/** The data of a `ping` event; `timestamp` is when it was emitted, in milliseconds. */
export function pingJson(timestamp: number, tail: StreamTail): string {
  return `{"timestamp":${timestamp},"tail":${positionJson(tail)}}`
}

/** Decodes the JSON form of a batch whose strings are base64. Throws {@link MalformedResponse}. */
export function decodeReadBatchJson(value: unknown): ReceivedBatch {
  const batch = recordOf(value, 'batch')
  const records = responseArrayOf(batch.records, 'records')
  if (records.length > READ_RECORDS_MAX) throw tooManyRecords()
  return {
    records: records.map((record) => recordOfJson(recordOf(record, 'record'))),
    tail: unlessNull(batch.tail, positionOf),
  }
}

function recordOfJson({ seq_num, timestamp, headers, body }: ResponseObject): SequencedRecord {
  return withCommand(
    integerOfJson(seq_num, 'seq_num'),
    integerOfJson(timestamp, 'timestamp'),
    responseArrayOf(headers ?? [], 'headers').map((header): Header => {
      const [name, value] = responseArrayOf(header, 'headers')
      return [base64Of(name, 'headers'), base64Of(value, 'headers')]
    }),
    base64Of(body ?? '', 'body'),
  )
}

function base64Of(value: unknown, name: string): Uint8Array {
  const bytes = decodeBase64(textOfJson(value, name))
  if (bytes === undefined) throw new MalformedResponse(`\`${name}\` is not base64`)
  return bytes
}
