import { type AppendConditions, appendRecord, type RecordInput } from '../model/append-input.ts'
import { invalid, refuse } from '../model/errors.ts'
import { fencingTokenProblem } from '../model/fencing-token.ts'
import type { AppendAck } from '../model/info.ts'
import { checkInteger } from '../model/integers.ts'
import { BATCH_METERED_BYTES_MAX, BATCH_RECORDS_MAX } from '../model/limits.ts'
import { once } from './deferred.ts'
import type { Gathering } from './gathering.ts'

export interface ProducerOptions extends AppendConditions {
  /** Ends the producer: what was not durable by then fails with its reason. */
  readonly signal?: AbortSignal | undefined
  /** How long a record waits for others to share its batch, in milliseconds; 5 by default, 0 sends at the next turn. */
  readonly lingerMs?: number
  /** 1 to 1,000 records a batch; 1,000 by default. */
  readonly recordsMax?: number
  /** Metered bytes a batch, up to 1 MiB; 1 MiB by default. A single record may be larger. */
  readonly bytesMax?: number
}

export interface RecordAck {
  /** The record's own sequence number. */
  readonly seqNum: number
  /** The ack of the batch that it went in. */
  readonly batch: AppendAck
}

/** A record that a producer has taken in. */
export interface RecordTicket {
  /** Resolves when the record is durable, rejects when it or one before it failed. */
  ack(): Promise<RecordAck>
}

/** The same, complete and checked. */
export interface GatheringOptions extends AppendConditions {
  readonly signal: AbortSignal | undefined
  readonly lingerMs: number
  readonly recordsMax: number
  readonly bytesMax: number
}

/**
 * Gathers single records into batches and appends them through a session: one ack a record, in order. `matchSeqNum` holds for the first
 * record, and then each batch expects to follow the one before, so that nobody else's records come between.
 */
export class Producer {
  readonly #gathering: () => Promise<Gathering>

  /** Throws 422 `invalid` for options that make no sense. */
  constructor(options: ProducerOptions, load: (options: GatheringOptions) => Promise<Gathering>) {
    const checked = checkedOptions(options)
    this.#gathering = once(() => load(checked))
  }

  /** Takes in one record. Resolves when there is room for more; its `ack` resolves when the record is durable. */
  async submit(input: RecordInput): Promise<RecordTicket> {
    // Now: the caller may use its buffers again as soon as the call returns.
    const record = appendRecord(input)
    return (await this.#gathering()).submit(record)
  }

  /** Sends what has gathered and resolves when everything submitted so far is durable. */
  async flush(): Promise<void> {
    await (await this.#gathering()).flush()
  }

  /** Flushes and ends; rejects with the failure that ended the producer. */
  async close(): Promise<void> {
    await (await this.#gathering()).close()
  }

  /** Like `close`, without the failure: for `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close().catch(() => {})
  }
}

function checkedOptions(options: ProducerOptions): GatheringOptions {
  const { signal, lingerMs = 5, fencingToken, matchSeqNum } = options
  const { recordsMax = BATCH_RECORDS_MAX, bytesMax = BATCH_METERED_BYTES_MAX } = options
  checkWithin(recordsMax, BATCH_RECORDS_MAX, 'recordsMax')
  checkWithin(bytesMax, BATCH_METERED_BYTES_MAX, 'bytesMax')
  if (!(lingerMs >= 0)) throw invalid('lingerMs must not be negative', 'lingerMs')
  if (fencingToken !== undefined) refuse(fencingTokenProblem(fencingToken), 'fencingToken')
  if (matchSeqNum !== undefined) checkInteger(matchSeqNum, 'matchSeqNum')
  return { signal, lingerMs, recordsMax, bytesMax, fencingToken, matchSeqNum }
}

function checkWithin(value: number, most: number, field: string): void {
  if (!Number.isInteger(value) || value < 1 || value > most) {
    throw invalid(`${field} must be an integer from 1 to ${most}`, field)
  }
}
