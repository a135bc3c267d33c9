import type { ReadPolicy } from '../../core/read-plan.ts'
import { type AppendBatch, appendBatch, ownBytes, type RecordInput } from '../../model/append-input.ts'
import { fenceRecord, trimRecord } from '../../model/command.ts'
import { assertStreamConfig, type StreamConfigInput } from '../../model/config.ts'
import type { AppendAck } from '../../model/info.ts'
import type { Metric, MetricsQuery, StreamMetricSet } from '../../model/metrics.ts'
import type { StreamPosition } from '../../model/position.ts'
import type { ReadQuery } from '../../model/read-query.ts'
import type { RecordFormat } from '../../model/record.ts'
import { type EncryptionKeyInput, RedactedKey } from '../../model/redacted-key.ts'
import { assertMembers, type MembersOf, unchecked } from '../../model/validation.ts'
import { type AnySignal, onAnyAbort, unlessAborted } from '../../runtime/abort.ts'
import type { ReadBatch } from '../../storage/record-batch.ts'
import type { ReadCursor } from '../log/read-cursor.ts'
import type { Reservation } from '../service/admission.ts'
import type { StreamTarget } from '../service/stream-target.ts'
import { APPEND_ALL_OPTIONS, appendAll } from './append-all.ts'
import { type AppendOptions, AppendSession } from './append-session.ts'
import { type CallOptions, signalOf } from './call-options.ts'
import type { Caller } from './caller.ts'
import type { Engine } from './engine.ts'
import { JsonCodec, type StandardSchema } from './json-codec.ts'
import { JsonStream } from './json-stream.ts'
import { Producer, type ProducerOptions } from './producer.ts'
import { READ_OPTIONS, type ReadOptions, type ReadSession, RecordSession } from './read-session.ts'

/** Options of a stream handle. */
export interface StreamOptions {
  /** The configuration of the stream if its first use creates it. */
  readonly config?: StreamConfigInput | undefined
  /**
   * The key for the records of a stream with a cipher: 32 bytes, or their base64. It is never stored. Without
   * a valid key, appends and reads reject with `bad_header`; with the wrong key, reads reject with
   * `decryption_failed`. Plain streams ignore it.
   */
  readonly encryptionKey?: EncryptionKeyInput | undefined
}

export const STREAM_OPTIONS: MembersOf<StreamOptions> = {
  config: (value) => assertStreamConfig(value as StreamConfigInput),
  // Checked when an encrypted stream needs it: `bad_header`.
  encryptionKey: unchecked,
}

/**
 * A handle of a stream, made by `basin.stream(name)`. It costs nothing and resolves the name at each call.
 *
 * Errors of all methods: `basin_not_found`, `stream_not_found`, `basin_deletion_pending`, `storage`,
 * `unavailable` once the engine is closed, and for holders of access tokens `authn` and `permission_denied`.
 */
export class Stream {
  /** The name of the stream. */
  readonly name: string
  /** The name of its basin. */
  readonly basinName: string
  readonly #engine: Engine
  readonly #caller: Caller
  readonly #target: StreamTarget

  /** @internal */
  constructor(engine: Engine, caller: Caller, target: StreamTarget) {
    this.#engine = engine
    this.#caller = caller
    this.#target = target
    this.name = target.ref.stream
    this.basinName = target.ref.basin
  }

  /** @internal Returns whether the other handle makes the same calls. Its configuration is not compared. */
  equals(other: unknown): boolean {
    if (!(other instanceof Stream) || other.#engine !== this.#engine || other.#caller !== this.#caller)
      return false
    const { ref, key } = other.#target
    const mine = this.#target
    return ref.basin === mine.ref.basin && ref.stream === mine.ref.stream && RedactedKey.equal(key, mine.key)
  }

  /**
   * Appends one record, or a batch of 1 to 1,000 records (at most 1 MiB metered) that is stored as a whole or
   * not at all. Resolves when the batch is durable. Appends are stored in the order of the calls, awaited or
   * not. Creates the stream where that is allowed.
   *
   * Errors:
   * - `invalid` for records or conditions that break a rule or a limit
   * - `fencing_token_mismatch`, `seq_num_mismatch` when a condition does not hold, with the stream's actual
   *   value
   * - `bad_header` when the stream is encrypted and the handle has no valid key
   * - `stream_deletion_pending` when the stream is deleted during the call
   * - `transaction_conflict` when other engines kept appending first; nothing was appended
   * - `rate_limited` when too many bytes wait (`limits.appendWaitingBytes`)
   * - `storage`, `storage_full` when the storage fails; `mayHaveEffects` says whether the batch may have been
   *   stored
   */
  append(records: RecordInput | readonly RecordInput[], options?: AppendOptions): Promise<AppendAck> {
    try {
      const batch = appendBatch(records, options)
      const signal = options?.signal
      signal?.throwIfAborted()
      const { admission, appends } = this.#engine
      // Before the permission is checked: a batch that waits for a token look-up occupies memory.
      const reservation = admission.reserve(batch.meteredBytes)
      const acked = this.#caller.isOwner
        ? appends.append(this.#target, batch, reservation)
        : this.#appendAsHolder(batch, reservation, signal)
      return signal === undefined ? acked : unlessAborted(signal, acked)
    } catch (error) {
      return Promise.reject(error)
    }
  }

  /**
   * Sets the fencing token: at most 36 bytes of UTF-8, `''` clears it. Appends that name another token reject
   * with `fencing_token_mismatch`. The command is stored as a record; conditions and errors are those of
   * `append`.
   */
  async fence(token: string, options?: AppendOptions): Promise<AppendAck> {
    return this.append(fenceRecord(token), options)
  }

  /**
   * Removes all records with a sequence number below `seqNum`, at most up to and including the command
   * itself. The command is stored as a record; conditions and errors are those of `append`.
   */
  async trim(seqNum: number, options?: AppendOptions): Promise<AppendAck> {
    return this.append(trimRecord(seqNum), options)
  }

  /**
   * Opens a session of pipelined appends. The signal ends the session with its reason. Rejects with
   * `rate_limited` when too many sessions are open (`limits.openSessions`), and with `bad_header` when the
   * stream is encrypted and the handle has no valid key.
   */
  async appendSession(options?: CallOptions): Promise<AppendSession> {
    const signal = signalOf(options)
    signal?.throwIfAborted()
    const { admission, appends, clock, closing, sessionInFlightBytes } = this.#engine
    const { ref } = this.#target
    return this.#caller.open('append', this.#target, signal, async ({ permit, target, watch }) => {
      const appender = await unlessAborted(signal, appends.openAppender(target), (late) => late.release())
      return new AppendSession({
        appender,
        reserve: (bytes) => admission.reserve(bytes),
        inFlightBytes: sessionInFlightBytes,
        clock,
        closing,
        signal,
        revoked: watch?.ended,
        check: (batch) => permit.authorizeCommands(ref, batch),
        onEnd: () => watch?.release(),
      })
    })
  }

  /**
   * Appends batches from an iterable and yields their acks in order, taking no more than may be in flight.
   * Leaving the loop, the signal and closing the engine end it, even while the source is idle.
   */
  appendAll(
    batches:
      | AsyncIterable<RecordInput | readonly RecordInput[]>
      | Iterable<RecordInput | readonly RecordInput[]>,
    options: Pick<AppendOptions, 'fencingToken' | 'signal'> = {},
  ): AsyncGenerator<AppendAck, void, undefined> {
    assertMembers(options, APPEND_ALL_OPTIONS, 'options')
    const { fencingToken, signal } = options
    return appendAll(batches, {
      open: () => this.appendSession({ signal }),
      submit: (session, batch) => session.submit(batch, { fencingToken }),
      signals: [this.#engine.closing, signal],
    })
  }

  /**
   * Makes a producer, which collects single records into batches. Throws `invalid` for options out of range.
   */
  producer(options: ProducerOptions = {}): Producer {
    const { admission, clock, closing } = this.#engine
    return new Producer(options, {
      openSession: () => this.appendSession({ signal: options.signal }),
      reserve: (bytes) => admission.reserve(bytes),
      clock,
      closing,
    })
  }

  /**
   * Reads one batch: at most 1,000 records and 1 MiB metered. With `waitSeconds` (at most 60) it waits at the
   * tail for the first append, and is empty if none comes. Never creates the stream, unless the basin is
   * configured with `createStreamOnRead`.
   *
   * Errors:
   * - `range_not_satisfiable`, with the tail, for a start beyond the tail, or when no record is available and
   *   the query does not wait
   * - `invalid` for a malformed query
   * - `bad_header` when the stream is encrypted and the handle has no valid key, `decryption_failed` when it
   *   has another key
   * - `rate_limited` when too many sessions are open (`limits.openSessions`), or when the read makes no
   *   progress while `limits.readBufferBytes` is used up
   * - `unavailable` when the stream is deleted while it is read
   */
  read(
    query?: ReadQuery,
    options?: Omit<ReadOptions, 'as'> & { readonly as?: 'string' },
  ): Promise<ReadBatch<'string'>>
  read(query: ReadQuery, options: ReadOptions & { readonly as: 'bytes' }): Promise<ReadBatch<'bytes'>>
  read<Format extends RecordFormat>(
    query: ReadQuery,
    options: ReadOptions<Format>,
  ): Promise<ReadBatch<Format>>
  async read(query: ReadQuery = {}, options: ReadOptions = {}): Promise<ReadBatch<RecordFormat>> {
    assertMembers(options, READ_OPTIONS, 'options')
    const { as = 'string', signal } = options
    return (await this.readBatch(query, { signal })).as(as)
  }

  /** @internal Reads one batch, in bytes. */
  async readBatch(
    query: ReadQuery,
    { signal, ...policy }: ReadPolicy & { readonly signal?: AbortSignal | undefined },
  ): Promise<ReadBatch> {
    signal?.throwIfAborted()
    return this.#caller.open('read', this.#withoutCreation(), signal, async ({ target, watch }) => {
      const { ended, stop } = anyOf(signal, watch?.ended)
      try {
        return await this.#engine.reads.batch(target, query, ended, policy)
      } finally {
        stop()
        watch?.release()
      }
    })
  }

  /**
   * Makes a session that reads history from the start of the query (the tail by default) and then follows
   * live, unless the query is bounded. Nothing happens before the session is used. Creates the stream where
   * that is allowed.
   */
  readSession(
    query?: ReadQuery,
    options?: Omit<ReadOptions, 'as'> & { readonly as?: 'string' },
  ): ReadSession<'string'>
  readSession(query: ReadQuery, options: ReadOptions & { readonly as: 'bytes' }): ReadSession<'bytes'>
  readSession<Format extends RecordFormat>(
    query: ReadQuery,
    options: ReadOptions<Format>,
  ): ReadSession<Format>
  readSession(query: ReadQuery = {}, options: ReadOptions = {}): ReadSession<RecordFormat> {
    assertMembers(options, READ_OPTIONS, 'options')
    const { as = 'string', signal } = options
    return new RecordSession(
      (heartbeats) => this.openRead(query, { heartbeats }),
      (batch) => batch.as(as),
      signal,
    )
  }

  /**
   * Returns a view of the stream for JSON values: of a type, or of the output of a Standard Schema, such as
   * those of zod, valibot and arktype. It costs nothing. Throws `invalid` for an object that is not a schema.
   */
  json<Value = unknown>(): JsonStream<Value>
  json<Input, Value>(schema: StandardSchema<Input, Value>): JsonStream<Value, Input>
  json<Input, Value>(schema?: StandardSchema<Input, Value>): JsonStream<Value, Input> {
    return new JsonStream<Value, Input>(this, new JsonCodec<Value>(schema), this.#engine.closing)
  }

  /**
   * @internal Opens a read session at once, so that its errors come first. Resolves to undefined when it ends
   * at once.
   */
  openRead(
    query: ReadQuery = {},
    options: ReadPolicy & { readonly heartbeats?: boolean } = {},
  ): Promise<ReadCursor | undefined> {
    return this.#caller.open('read', this.#target, undefined, async ({ target, watch }) => {
      const cursor = await this.#engine.reads.open(target, query, {
        ...options,
        ending: watch?.ended,
        // Undefined without a token: a function would keep this call's objects with each follower.
        onEnd: watch && (() => watch.release()),
      })
      if (cursor === undefined) watch?.release()
      return cursor
    })
  }

  /**
   * Resolves to the tail: the sequence number of the next record, and the timestamp of the last one in
   * milliseconds (0 if there is none). Never creates the stream, unless the basin is configured with
   * `createStreamOnRead`.
   */
  async checkTail(options?: CallOptions): Promise<StreamPosition> {
    const target = this.#withoutCreation()
    return this.#caller.run('check-tail', target.ref, options, (permit) =>
      this.#engine.reads.tail(permit.resolveTarget(target)),
    )
  }

  /**
   * Resolves to usage metrics of the stream (docs/protocol.md "Usage metrics"). Rejects with `unavailable`
   * unless the engine meters usage.
   */
  async metrics(query: MetricsQuery<StreamMetricSet>, options?: CallOptions): Promise<readonly Metric[]> {
    const { ref } = this.#target
    return this.#caller.run('stream-metrics', ref, options, (permit) =>
      this.#engine.usage.metrics.stream(permit.resolveRef(ref), query),
    )
  }

  async #appendAsHolder(
    batch: AppendBatch,
    reservation: Reservation,
    signal: AbortSignal | undefined,
  ): Promise<AppendAck> {
    try {
      ownBytes(batch)
      return await this.#caller.appendAsHolder(this.#target, batch, signal, (target) =>
        this.#engine.appends.append(target, batch, reservation),
      )
    } finally {
      reservation.release()
    }
  }

  #withoutCreation(): StreamTarget {
    const { creation } = this.#target
    return creation.always ? { ...this.#target, creation: { ...creation, always: false } } : this.#target
  }
}

/** A signal that aborts with the first of two, and the function that stops listening. */
function anyOf(
  one: AbortSignal | undefined,
  other: AnySignal | undefined,
): { readonly ended: AnySignal | undefined; readonly stop: () => void } {
  if (one === undefined || other === undefined) return { ended: one ?? other, stop: () => {} }
  const either = new AbortController()
  return { ended: either.signal, stop: onAnyAbort([one, other], (reason) => either.abort(reason)) }
}
