import {
  APPEND_OPTIONS,
  type AppendBatch,
  type AppendConditions,
  appendRecord,
  batchSizeError,
  type Lines,
} from './append-input.ts'
import { BATCH_METERED_BYTES_MAX, BATCH_RECORDS_MAX } from './limits.ts'
import type { ProducerBatch } from './producer-batch.ts'
import type { AppendRecord } from './record.ts'
import { assertMembers } from './validation.ts'

/**
 * Validates and meters lines as a batch with one record for each: the limits are those of `appendBatch`.
 * Throws `invalid`.
 */
export function lineBatch(lines: Lines, conditions?: AppendConditions): AppendBatch {
  const { count, meteredBytes } = lines
  // With this, every record is within its own limits, and so is the batch in its protobuf encoding.
  if (count === 0 || count > BATCH_RECORDS_MAX || meteredBytes > BATCH_METERED_BYTES_MAX) {
    throw batchSizeError(count)
  }
  if (conditions !== undefined) assertMembers(conditions, APPEND_OPTIONS, 'options')
  return new LineBatch(lines, meteredBytes, conditions)
}

class LineBatch implements AppendBatch {
  borrows = true
  readonly meteredBytes: number
  readonly fencingToken: string | undefined
  readonly matchSeqNum: number | undefined
  readonly producer: ProducerBatch | undefined
  readonly streamSeq: string | undefined
  #lines: Lines | undefined
  #records: readonly AppendRecord[] | undefined

  constructor(lines: Lines, meteredBytes: number, conditions: AppendConditions = {}) {
    this.#lines = lines
    this.meteredBytes = meteredBytes
    this.fencingToken = conditions.fencingToken
    this.matchSeqNum = conditions.matchSeqNum
    this.producer = conditions.producer && { ...conditions.producer }
    this.streamSeq = conditions.streamSeq
  }

  get lines(): Lines | undefined {
    return this.#lines
  }

  set lines(lines: Lines | undefined) {
    this.#lines = lines
    this.#records = undefined
  }

  get records(): readonly AppendRecord[] {
    this.#records ??= this.#lines!.bodies().map((body) => appendRecord(body))
    return this.#records
  }

  set records(records: readonly AppendRecord[]) {
    this.#lines = undefined
    this.#records = records
  }
}
