import { lossyTextOf } from '../model/bytes.ts'
import type { SequencedRecord } from '../model/record.ts'
import type { ReadBatch } from '../storage/record-batch.ts'
import { encodeBase64 } from './base64.ts'
import type { DataFormat } from './data-format.ts'

type TextOf = (bytes: Uint8Array) => string

const TEXT_OF: Record<DataFormat, TextOf> = { raw: lossyTextOf, base64: encodeBase64 }
const texts = { raw: new WeakMap<ReadBatch, string>(), base64: new WeakMap<ReadBatch, string>() }

/**
 * The JSON form of a batch (wire-behaviour.md 5.6): `headers` and `body` are left out when empty, `tail` when there is none. In raw
 * format, bytes that are no UTF-8 become U+FFFD. Made once for each batch and format, so that all readers of a batch share one string.
 */
export function readBatchJson(batch: ReadBatch, format: DataFormat): string {
  const known = texts[format].get(batch)
  if (known !== undefined) return known
  const text = write(batch, TEXT_OF[format])
  texts[format].set(batch, text)
  return text
}

function write({ records, tail }: ReadBatch, textOf: TextOf): string {
  return JSON.stringify({
    records: records.map((record) => recordForm(record, textOf)),
    tail: tail && { seq_num: tail.seqNum, timestamp: tail.timestamp },
  })
}

/** The members stand in the order in which they are written. */
function recordForm({ seqNum, timestamp, headers, body }: SequencedRecord, textOf: TextOf): object {
  return {
    seq_num: seqNum,
    timestamp,
    headers: headers.length === 0 ? undefined : headers.map(([name, value]) => [textOf(name), textOf(value)]),
    body: body.length === 0 ? undefined : textOf(body),
  }
}
