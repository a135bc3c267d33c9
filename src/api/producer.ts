import {
  type AppendConditions,
  appendRecord,
  isFencingToken,
  type RecordInput,
} from '../model/append-input.ts'
import { invalid } from '../model/errors.ts'
import { BATCH_METERED_BYTES_MAX, BATCH_RECORDS_MAX } from '../model/limits.ts'
import { assertInteger, assertMembers, type Check, type MembersOf } from '../model/validation.ts'
import { CALL_OPTIONS, type CallOptions, signalOf } from './call-options.ts'
import {
  RecordBatcher,
  type RecordBatcherContext,
  type RecordBatcherOptions,
  type RecordTicket,
} from './record-batcher.ts'

/**
 * Options of a producer. `matchSeqNum` holds for the first record; each batch then expects to follow the one
 * before.
 *
 * ```ts
 * const stop = new AbortController()
 * await using producer = stream.producer({ recordsMax: 100, bytesMax: 65_536, signal: stop.signal })
 * await producer.submit('hello')
 * await producer.flush()
 * ```
 */
export interface ProducerOptions extends Pick<AppendConditions, 'fencingToken' | 'matchSeqNum'> {
  /** Ends the producer: records that are not durable by then fail with the signal's reason. */
  readonly signal?: AbortSignal | undefined
  /**
   * How long a record waits for others to share its batch, in milliseconds. 5 by default; 0 sends in the next
   * turn.
   */
  readonly lingerMs?: number | undefined
  /** Records per batch, 1 to 1,000. 1,000 by default. */
  readonly recordsMax?: number | undefined
  /** Metered bytes per batch, 1 to 1,048,576 (1 MiB, the default). A single record may be larger. */
  readonly bytesMax?: number | undefined
}

/**
 * Collects single records into batches and appends them through a session: one ack per record, in order. The
 * first failure ends it.
 */
export class Producer {
  readonly #batcher: RecordBatcher

  /** @internal Throws `invalid` for options out of range. */
  constructor(options: ProducerOptions, context: RecordBatcherContext) {
    this.#batcher = new RecordBatcher(context, checkedOptions(options))
  }

  /**
   * Accepts one record. Resolves when there is room for more. Rejects with `invalid` for a record that breaks
   * a rule, and with the failure that ended the producer. A signal that aborts later does not withdraw the
   * record.
   */
  async submit(input: RecordInput, options?: CallOptions): Promise<RecordTicket> {
    const signal = signalOf(options)
    signal?.throwIfAborted()
    // Validated and copied now: the caller may reuse its buffers as soon as the call returns.
    return this.#batcher.submit(appendRecord(input), signal)
  }

  /** Sends the collected records. Resolves when everything submitted so far is durable. */
  async flush(options?: CallOptions): Promise<void> {
    await this.#batcher.flush(signalOf(options))
  }

  /** Flushes and ends. Rejects with the failure that ended the producer. */
  async close(options?: CallOptions): Promise<void> {
    await this.#batcher.close(signalOf(options))
  }

  /**
   * Closes the producer for `await using`. Rejects as `close` does, unless a call of the producer or of one
   * of its tickets has already rejected because of the failure.
   */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#batcher.dispose()
  }
}

const PRODUCER_OPTIONS: MembersOf<ProducerOptions> = {
  fencingToken: isFencingToken,
  matchSeqNum: assertInteger,
  ...CALL_OPTIONS,
  lingerMs: 'number',
  recordsMax: isWithin(BATCH_RECORDS_MAX),
  bytesMax: isWithin(BATCH_METERED_BYTES_MAX),
}

function checkedOptions(options: ProducerOptions): RecordBatcherOptions {
  assertMembers(options, PRODUCER_OPTIONS, 'options')
  const { signal, lingerMs = 5, fencingToken, matchSeqNum } = options
  const { recordsMax = BATCH_RECORDS_MAX, bytesMax = BATCH_METERED_BYTES_MAX } = options
  if (!(lingerMs >= 0)) throw invalid(`lingerMs must be at least 0, not ${lingerMs}`, 'lingerMs')
  return { signal, lingerMs, recordsMax, bytesMax, fencingToken, matchSeqNum }
}

function isWithin(max: number): Check {
  return (value, field) => {
    if (!Number.isInteger(value) || (value as number) < 1 || (value as number) > max) {
      const range = `1 to ${max.toLocaleString('en-US')}`
      throw invalid(`${field} must be an integer from ${range}, not ${String(value)}`, field)
    }
  }
}
