import { lossyTextOf } from '../model/bytes.ts'
import type { StreamTail } from '../model/position.ts'
import type { SequencedRecord } from '../model/record.ts'
import type { ReadBatch } from '../storage/record-batch.ts'
import { encodeBase64 } from './base64.ts'
import type { DataFormat } from './headers.ts'

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
