import type { ReadPolicy } from '../core/read-plan.ts'
import { type AppendConditions, appendBatch, asArray, type RecordInput } from '../model/append-input.ts'
import { fenceRecord, trimRecord } from '../model/command.ts'
import type { StreamConfigInput } from '../model/config.ts'
import type { EncryptionKeyInput } from '../model/encryption-key.ts'
import type { AppendAck } from '../model/info.ts'
import type { Metric, MetricsQuery, StreamMetricSet } from '../model/metrics.ts'
import type { StreamPosition } from '../model/position.ts'
import type { ReadQuery } from '../model/read-query.ts'
import type { ReadBatch } from '../storage/record-batch.ts'
import { unlessAborted } from './abort.ts'
import type { AppendSession } from './append-session.ts'
import type { StreamUse } from './context.ts'
import { leavable } from './leavable.ts'
import { Producer, type ProducerOptions } from './producer.ts'
import type { ReadCursor } from './read-cursor.ts'
import { type ReadOptions, ReadSession } from './read-session.ts'
import type { EngineView } from './view.ts'

export interface StreamOptions {
  /** Configuration that the stream gets if its first use creates it. */
  readonly config?: StreamConfigInput | undefined
  /**
   * For the records of a stream with a cipher: 32 bytes, or the same in base64; never stored. A missing or malformed key is `bad_header`, a
   * wrong one `decryption_failed` when reading. Other streams ignore it. wire-behaviour.md 10.
   */
  readonly encryptionKey?: EncryptionKeyInput | undefined
}

/**
 * A stream by name: costs nothing to make, looks the name up at each call. Common errors: `basin_not_found`, `stream_not_found` (where the
 * first use does not create them), `basin_deletion_pending`, `storage`, and `unavailable` once the engine is closed.
 */
export class Stream {
  readonly name: string
  readonly basinName: string
  readonly #view: EngineView
  readonly #use: StreamUse

  constructor(view: EngineView, use: StreamUse) {
    this.#view = view
    this.#use = use
    this.name = use.ref.stream
    this.basinName = use.ref.basin
  }

  /**
   * Appends one record, or a batch of 1 to 1,000 (1 MiB metered) that is stored whole or not at all. Resolves when it is durable. Appends
   * made one after the other are stored in that order, awaited or not, unless another engine deletes the stream meanwhile.
   *
   * Errors: `invalid` (422) for records that break a rule or a limit; `fencing_token_mismatch` and `seq_num_mismatch` (412) with what the
   * stream has; `rate_limited` (429) when too many bytes wait (`limits.appendWaitingBytes`); `storage` (500) when it may or may not have been
   * stored. service-interface.md "Append records", wire-behaviour.md 3.
   */
  append(records: RecordInput | readonly RecordInput[], conditions?: AppendConditions): Promise<AppendAck> {
    try {
      const batch = appendBatch(asArray(records), conditions)
      const settled = this.#view.engine.pendingBytes.take(batch.meteredBytes)
      const acked = this.#view.records.append(this.#use, batch)
      // Before the caller is told: who appends again then finds room.
      acked.then(settled, settled)
      return acked
    } catch (error) {
      return Promise.reject(error)
    }
  }

  /** Sets the fencing token, at most 36 bytes of UTF-8; `''` clears it. An append like any other, conditions included. */
  fence(token: string, conditions?: AppendConditions): Promise<AppendAck> {
    return this.append(fenceRecord(token), conditions)
  }

  /** Removes all records below `seqNum`, at most up to and including the command itself. An append like any other. */
  trim(seqNum: number, conditions?: AppendConditions): Promise<AppendAck> {
    try {
      return this.append(trimRecord(seqNum), conditions)
    } catch (error) {
      return Promise.reject(error)
    }
  }

  /** Opens a session of pipelined appends. The signal ends it, as does closing the engine: with the signal's reason. */
  appendSession(options: { readonly signal?: AbortSignal | undefined } = {}): Promise<AppendSession> {
    return this.#view.records.appendSession(this.#use, { signal: options.signal })
  }

  /**
   * Appends batches as they come and yields their acks in order, taking in no more than may be in flight. Leaving the loop, the signal and
   * closing the engine end it, also while the source is idle.
   */
  appendAll(
    batches:
      | AsyncIterable<RecordInput | readonly RecordInput[]>
      | Iterable<RecordInput | readonly RecordInput[]>,
    options: Pick<AppendConditions, 'fencingToken'> & { readonly signal?: AbortSignal | undefined } = {},
  ): AsyncGenerator<AppendAck, void, undefined> {
    const { fencingToken, signal } = options
    const { rest, closing } = this.#view.engine
    return leavable(async (left) => {
      const { pipelined } = await unlessAborted(left, rest.load())
      const open = () => this.appendSession({ signal })
      const submit = (session: AppendSession, batch: RecordInput | readonly RecordInput[]) =>
        session.submit(batch, { fencingToken })
      return pipelined(batches, open, submit, [closing, signal, left])
    })
  }

  /** Gathers single records into batches. */
  producer(options: ProducerOptions = {}): Producer {
    const { settings, closing, rest, pendingBytes } = this.#view.engine
    return new Producer(options, async (checked) => {
      const { Gathering } = await rest.load()
      const openSession = () => this.appendSession({ signal: checked.signal })
      return new Gathering(openSession, { clock: settings.clock, closing, pendingBytes }, checked)
    })
  }

  /** History from `query`, then live unless it is bounded; by default from the tail on. Nothing happens before it is used. */
  read(query: ReadQuery = {}, options: ReadOptions = {}): ReadSession {
    const { emptyAtTail } = options
    return new ReadSession(
      (heartbeats) =>
        this.#view.records.readSession(this.#use, query, {
          heartbeats,
          ...(emptyAtTail !== undefined && { emptyAtTail }),
        }),
      options.signal,
    )
  }

  /**
   * Opens a read session at once, so that errors come before the first batch: what `read` does when it is first used. Undefined: there is
   * nothing to deliver. The caller calls `next` until it gives undefined, or `close`.
   */
  openRead(
    query: ReadQuery = {},
    options: ReadPolicy & { readonly heartbeats?: boolean } = {},
  ): Promise<ReadCursor | undefined> {
    return this.#view.records.readSession(this.#use, query, options)
  }

  /**
   * Reads one batch: at most 1,000 records and 1 MiB. With `waitSeconds` (up to 60) it waits at the tail for the first append and is empty
   * if none comes. Errors: `range_not_satisfiable` (416) with the tail, when nothing is there and it does not wait.
   */
  readBatch(query: ReadQuery = {}, options: { readonly signal?: AbortSignal } = {}): Promise<ReadBatch> {
    return this.#view.records.readBatch(this.#use, query, options.signal)
  }

  /** The sequence number that the next record will get, and the timestamp of the last one. */
  checkTail(): Promise<StreamPosition> {
    return this.#view.records.checkTail(this.#use)
  }

  /** Usage of the stream (wire-behaviour.md 11.2); `start` and `end` are required. Errors: `invalid`. */
  metrics(query: MetricsQuery<StreamMetricSet>): Promise<readonly Metric[]> {
    return this.#view.metrics.stream(this.#use.ref, query)
  }
}
