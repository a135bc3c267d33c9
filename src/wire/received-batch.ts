import { READ_RECORDS_MAX } from '../model/limits.ts'
import type { StreamTail } from '../model/position.ts'
import {
  commandOf,
  type Header,
  meteredBytesOf,
  type SequencedRecord,
  type TextRecord,
  textRecord,
} from '../model/record.ts'
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

/** Makes a batch of records that were received. */
export function batchOf({ records, tail }: ReceivedBatch): ReadBatch {
  let meteredBytes = 0
  for (const { headers, body } of records) meteredBytes += meteredBytesOf(headers, body)
  const summary = { count: records.length, meteredBytes, lastSeqNum: records.at(-1)?.seqNum ?? -1 }
  return new ReadBatch(new ReceivedRecords(records), summary, tail)
}

/** Makes a record, with the command that it is, if any. */
export function receivedRecord(
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
