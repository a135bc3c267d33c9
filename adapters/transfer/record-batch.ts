import type { SequencedRecord } from '../../src/index.ts'
import {
  BATCH_ENCODED_BYTES_MAX,
  BATCH_METERED_BYTES_MAX,
  BATCH_RECORDS_MAX,
} from '../../src/model/limits.ts'
import { encodedBytesMaxOf, meteredBytesOf } from '../../src/model/record.ts'

/** Consecutive records that one append may hold. */
export class RecordBatch {
  #records: SequencedRecord[] = []
  #meteredBytes = 0
  #encodedBytes = 0

  /** Whether the record was taken: it has to follow the last one, and to leave the batch within its limits. */
  add(record: SequencedRecord): boolean {
    const { headers, body } = record
    const meteredBytes = this.#meteredBytes + meteredBytesOf(headers, body)
    const encodedBytes = this.#encodedBytes + encodedBytesMaxOf(headers, body)
    const last = this.#records.at(-1)
    if (last !== undefined) {
      const isFull =
        this.#records.length >= BATCH_RECORDS_MAX ||
        meteredBytes > BATCH_METERED_BYTES_MAX ||
        encodedBytes > BATCH_ENCODED_BYTES_MAX
      if (isFull || record.seqNum !== last.seqNum + 1) return false
    }
    this.#records.push(record)
    this.#meteredBytes = meteredBytes
    this.#encodedBytes = encodedBytes
    return true
  }

  /** The records; the batch is empty then. */
  take(): readonly SequencedRecord[] {
    const records = this.#records
    this.#records = []
    this.#meteredBytes = 0
    this.#encodedBytes = 0
    return records
  }
}
