import { READ_RECORDS_MAX } from '../model/limits.ts'
import type { Header, SequencedRecord } from '../model/record.ts'
import { decodeBase64 } from './base64.ts'
import { positionOf, type ReceivedBatch, tooManyRecords, withCommand } from './decode-records.ts'
import { integerOfJson, MalformedResponse, type ResponseObject, recordOf } from './response-json.ts'
import { responseArrayOf, textOfJson, unlessNull } from './response-members.ts'

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
