import type { AppendBatch } from '../../src/model/append-input.ts'
import type { AppendAck } from '../../src/model/info.ts'
import {
  BATCH_ENCODED_BYTES_MAX,
  BATCH_METERED_BYTES_MAX,
  BATCH_RECORDS_MAX,
} from '../../src/model/limits.ts'
import type { AppendRecord } from '../../src/model/record.ts'

/** A batch that waits for its acknowledgement. */
export interface WaitingBatch {
  readonly batch: AppendBatch
  readonly acked: (ack: AppendAck) => void
  readonly failed: (error: unknown) => void
}

/**
 * Batches of a session that follow each other and are appended as one, which has the same effect as one after
 * another: the same order, the same conditions, and an ack for each.
 */
export class BatchGroup {
  readonly batches: WaitingBatch[] = []
  #count = 0
  #meteredBytes = 0
  #encodedBytes = 0

  /** Whether the batch can be appended together with those in the group. */
  takes(batch: AppendBatch): boolean {
    const first = this.batches[0]?.batch
    if (first === undefined) return true
    const { records, meteredBytes, fencingToken, matchSeqNum } = batch
    const expected = first.matchSeqNum === undefined ? undefined : first.matchSeqNum + this.#count
    return (
      fencingToken === first.fencingToken &&
      matchSeqNum === expected &&
      this.#count + records.length <= BATCH_RECORDS_MAX &&
      this.#meteredBytes + meteredBytes <= BATCH_METERED_BYTES_MAX &&
      this.#encodedBytes + encodedBytesOf(records) <= BATCH_ENCODED_BYTES_MAX &&
      isPlain(first) &&
      isPlain(batch)
    )
  }

  /** Adds a batch, and resolves to its ack. */
  add(batch: AppendBatch): Promise<AppendAck> {
    this.#count += batch.records.length
    this.#meteredBytes += batch.meteredBytes
    this.#encodedBytes += encodedBytesOf(batch.records)
    return new Promise((acked, failed) => this.batches.push({ batch, acked, failed }))
  }

  /** All batches as one. */
  joined(): AppendBatch {
    const { batch } = this.batches[0]!
    if (this.batches.length === 1) return batch
    return {
      ...batch,
      records: this.batches.flatMap(({ batch }) => batch.records),
      meteredBytes: this.#meteredBytes,
    }
  }

  /** Acknowledges each batch. Records that were appended together have the same timestamp. */
  resolve(ack: AppendAck): void {
    const { start, end, tail } = ack
    let position = start
    this.batches.forEach(({ batch, acked }, index) => {
      const seqNum = position.seqNum + batch.records.length
      const next = index === this.batches.length - 1 ? end : { seqNum, timestamp: start.timestamp }
      acked({ start: position, end: next, tail })
      position = next
    })
  }

  /** Rejects all batches. */
  reject(error: unknown, discarded = error): void {
    const [first, ...others] = this.batches
    first?.failed(error)
    for (const { failed } of others) failed(discarded)
  }
}

/** Whether all records get the time of the append, and none is a command, which may change a condition. */
function isPlain({ records, lines }: AppendBatch): boolean {
  return lines === undefined && records.every(({ timestamp, command }) => timestamp === undefined && !command)
}

function encodedBytesOf(records: readonly AppendRecord[]): number {
  return records.reduce((sum, { encodedBytesMax }) => sum + encodedBytesMax, 0)
}
