import type { RecordInput } from '../model/append-input.ts'
import type { StreamConfig, StreamReconfiguration } from '../model/config.ts'
import type { AppendAck, RestoredStream, StreamMetadata } from '../model/info.ts'
import type { Metric, MetricsQuery, StreamMetricSet } from '../model/metrics.ts'
import type { StreamTail } from '../model/position.ts'
import { followQuery, historyQuery, type ReadQuery } from '../model/read-query.ts'
import { closeRecord, fenceRecord, type RecordAs, type RecordFormat, trimRecord } from '../model/record.ts'
import { assertMembers } from '../model/validation.ts'
import type { ReadBatch } from '../storage/record-batch.ts'
import { type AppendAllOptions, appendAll, inputSink } from './append-all.ts'
import type { AppendOptions, AppendSession, StreamContext } from './append-session.ts'
import type { CallOptions, SiblingOptions } from './call-options.ts'
import { JsonCodec, type StandardSchema } from './json-codec.ts'
import { JsonStream } from './json-stream.ts'
import { existsBy } from './lists.ts'
import { Producer, type ProducerOptions } from './producer.ts'
import { READ_OPTIONS, type ReadOptions, ReadSession, type SessionOf } from './read-session.ts'
import type { CursorOptions, RecordCursor } from './record-cursor.ts'
import { readableOf, writableTo } from './web-streams.ts'

/** One batch of records, or a single record. */
type AppendInput = RecordInput | readonly RecordInput[]

/**
 * A handle of a stream, made by `basin.stream(name)`. It costs nothing and resolves the name at each call.
 *
 * Errors of all methods: `basin_not_found`, `stream_not_found`, `basin_deletion_pending`, `storage`,
 * `closed` once the engine or the client is closed, and for holders of access tokens `authn` and
 * `permission_denied`.
 */
export abstract class Stream {
  readonly name: string
  readonly basinName: string
  /** @internal */
  readonly context: StreamContext

  /** @internal */
  constructor(basinName: string, name: string, context: StreamContext) {
    this.basinName = basinName
    this.name = name
    this.context = context
  }

  /** @internal Returns whether the other handle makes the same calls. Its configuration is not compared. */
  abstract equals(other: unknown): boolean

  /** @internal Returns a handle of a stream in the same basin, for the same caller and with the same key. */
  abstract sibling(name: string, options?: SiblingOptions): Stream

  /**
   * @internal Resolves to a text that no other stream of the storage ever had, not even an earlier one of the
   * same name. A client, which cannot tell earlier streams, resolves to the address of the stream.
   */
  abstract identity(options?: CallOptions): Promise<string>

  /** @internal Resolves to the metadata of the stream. A client rejects with `unsupported`. */
  abstract metadata(options?: CallOptions): Promise<StreamMetadata>

  /**
   * @internal Creates the stream as a continuation of another one, and its basin where a first append would.
   * Rejects with `resource_already_exists`. A client rejects with `unsupported`.
   */
  abstract restore(restored: RestoredStream, options?: CallOptions): Promise<void>

  /** @internal Opens a read at once, so that its errors come first. Resolves to undefined if it has ended. */
  abstract openCursor(query: ReadQuery, options: CursorOptions): Promise<RecordCursor | undefined>

  /** @internal Reads one batch, in bytes. */
  abstract readUnary(query: ReadQuery, options: CursorOptions & CallOptions): Promise<ReadBatch>

  /**
   * Appends one record, or a batch of 1 to 1,000 records (at most 1 MiB metered) that is stored as a whole or
   * not at all. Resolves when the batch is durable. Appends are stored in the order of the calls, awaited or
   * not. Creates the stream where that is allowed.
   *
   * Errors:
   * - `invalid` for records or conditions that break a rule or a limit
   * - `fencing_token_mismatch`, `seq_num_mismatch`, `stream_seq_not_increasing` with the actual value
   * - `already_appended`, `producer_fenced`, `producer_gap`, `too_many_producers` for a batch with `producer`
   * - `stream_closed` when the stream is closed
   * - `encryption_key_invalid` when the stream is encrypted and the handle has no valid key
   * - `stream_deletion_pending` when the stream is deleted during the call
   * - `transaction_conflict` when other engines kept appending first; nothing was appended
   * - `rate_limited` when too many bytes wait (`limits.appendWaitingBytes`)
   * - `storage`, `storage_full` when the storage fails; `mayHaveEffects` says whether the batch may have been
   *   stored
   *
   * ```ts
   * await stream.append('hello')
   * await stream.append([{ body: 'one' }, { body: 'two', headers: [['kind', 'example']] }])
   * await stream.append('only if the stream is empty', { matchSeqNum: 0 })
   * ```
   */
  abstract append(records: AppendInput, options?: AppendOptions): Promise<AppendAck>

  /**
   * Opens a session of pipelined appends. The signal ends the session with its reason. Rejects with
   * `rate_limited` when too many sessions are open (`limits.openSessions`), and with `encryption_key_invalid`
   * when the stream is encrypted and the handle has no valid key.
   */
  abstract appendSession(options?: CallOptions): Promise<AppendSession>

  /**
   * Resolves to the tail: the sequence number of the next record, and the timestamp of the last one in
   * milliseconds (0 if there is none). `closed` is set if the stream is closed. Never creates the stream,
   * unless the basin is configured with `createStreamOnRead`.
   */
  abstract checkTail(options?: CallOptions): Promise<StreamTail>

  /** Resolves to the whole configuration of the stream. Rejects with `stream_not_found`. */
  abstract config(options?: CallOptions): Promise<StreamConfig>

  /**
   * Changes the configuration: an absent member keeps its value, `null` returns it to the basin's default.
   * Resolves to the whole new configuration. Rejects with `stream_not_found`.
   */
  abstract reconfigure(change: StreamReconfiguration, options?: CallOptions): Promise<StreamConfig>

  /** Deletes the stream. Open sessions end with `stream_deleted`. Rejects with `stream_not_found`. */
  abstract delete(options?: CallOptions): Promise<void>

  /** Resolves to usage metrics of the stream. Rejects with `unsupported` unless usage is metered. */
  abstract metrics(query: MetricsQuery<StreamMetricSet>, options?: CallOptions): Promise<readonly Metric[]>

  /** Resolves to whether the stream exists. Needs the permission to read its configuration. */
  exists(options?: CallOptions): Promise<boolean> {
    return existsBy(this.config(options))
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
   * Closes the stream for good. The command is stored as its last record; later appends reject with
   * `stream_closed`, and followers end. Closing it again changes nothing and resolves to an ack with
   * `duplicate`. Conditions and errors are those of `append`.
   */
  async close(options?: AppendOptions): Promise<AppendAck> {
    return this.append(closeRecord(), options)
  }

  /**
   * Appends batches from an iterable and yields their acks in order, taking no more than may be in flight.
   * Leaving the loop, the signal and closing the engine end it, even while the source is idle.
   */
  appendAll(
    batches: AsyncIterable<AppendInput> | Iterable<AppendInput>,
    options: AppendAllOptions = {},
  ): AsyncGenerator<AppendAck, void, undefined> {
    return appendAll(batches, inputSink(this, options, this.context.closing))
  }

  /**
   * Makes a producer, which collects single records into batches. Throws `invalid` for options out of range.
   *
   * ```ts
   * await using producer = stream.producer({ lingerMs: 10 })
   * for (const line of ['one', 'two']) await producer.submit(line)
   * ```
   */
  producer(options: ProducerOptions = {}): Producer {
    return new Producer(options, {
      ...this.context,
      openSession: () => this.producerSession(options.signal),
    })
  }

  /** @internal Opens the session of a producer. */
  producerSession(signal?: AbortSignal): Promise<AppendSession> {
    return this.appendSession({ signal })
  }

  /**
   * Makes a session that reads what the stream holds now, from the first record unless the query says where,
   * and then ends. An empty stream yields nothing. Nothing happens before the session is used.
   */
  read<Format extends RecordFormat = 'string'>(
    query: ReadQuery = {},
    options: ReadOptions<Format> = {},
  ): SessionOf<Format> {
    return this.#session(() => historyQuery(query), options)
  }

  /**
   * Makes a session that follows the stream: from the tail unless the query says where, and on as records are
   * appended, until a bound of the query is reached. Nothing happens before the session is used.
   *
   * ```ts
   * for await (const { body } of stream.follow({ seqNum: 0 })) console.log(body)
   * ```
   */
  follow<Format extends RecordFormat = 'string'>(
    query: ReadQuery = {},
    options: ReadOptions<Format> = {},
  ): SessionOf<Format> {
    return this.#session(() => followQuery(query), options)
  }

  /**
   * Reads one batch, from the first record unless the query says where: at most 1,000 records and 1 MiB
   * metered. With `waitMs` (at most 60,000) it waits at the tail for the first append. Empty if there is
   * nothing to read. Errors are those of `read`.
   */
  async readBatch<Format extends RecordFormat = 'string'>(
    query: ReadQuery = {},
    options: ReadOptions<Format> = {},
  ): Promise<ReadBatch<Format>> {
    assertMembers(options, READ_OPTIONS, 'options')
    const { as = 'string' as Format, commands = true, create, signal } = options
    const batch = await this.readUnary(historyQuery(query), { create, signal, allowsEmpty: 'always' })
    return (commands ? batch : batch.withoutCommands()).as(as)
  }

  /**
   * Returns a view of the stream for JSON values: of a type, or of the output of a Standard Schema, such as
   * those of zod, valibot and arktype. It costs nothing. Throws `invalid` for an object that is not a schema.
   *
   * ```ts
   * const orders = stream.json<{ readonly id: number }>()
   * await orders.append({ id: 1 })
   * for await (const { value } of orders.read()) console.log(value.id)
   * ```
   */
  json<Value = unknown>(): JsonStream<Value>
  json<Input, Value>(schema: StandardSchema<Input, Value>): JsonStream<Value, Input>
  json<Input, Value>(schema?: StandardSchema<Input, Value>): JsonStream<Value, Input> {
    return new JsonStream<Value, Input>(this, new JsonCodec<Value>(schema), this.context.closing)
  }

  /** Returns a `ReadableStream` of the records that `follow` yields. It reads only as fast as it is read. */
  readable<Format extends RecordFormat = 'string'>(
    query?: ReadQuery,
    options?: ReadOptions<Format>,
  ): ReadableStream<RecordAs<Format>> {
    return readableOf(this.follow(query, options)[Symbol.asyncIterator]())
  }

  /**
   * Returns a `WritableStream` whose chunks are appended: each a record, or a batch. Writing waits for room
   * among the appends in flight; closing waits until all of them are durable, and fails if one failed.
   */
  writable(options: AppendAllOptions = {}): WritableStream<AppendInput> {
    return writableTo(inputSink(this, options, this.context.closing))
  }

  #session<Format extends RecordFormat>(
    queryOf: () => ReadQuery,
    options: ReadOptions<Format>,
  ): SessionOf<Format> {
    assertMembers(options, READ_OPTIONS, 'options')
    const { as = 'string' as Format, commands = true, create, signal } = options
    return new ReadSession(
      (heartbeats) => this.openCursor(queryOf(), { heartbeats, create, allowsEmpty: 'always' }),
      commands ? (batch) => batch.as(as) : (batch) => batch.withoutCommands().as(as),
      signal,
    )
  }
}
