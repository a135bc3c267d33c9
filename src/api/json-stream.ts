import type { RecordInput } from '../model/append-input.ts'
import { invalid } from '../model/errors.ts'
import type { AppendAck } from '../model/info.ts'
import { BATCH_RECORDS_MAX } from '../model/limits.ts'
import type { StreamPosition, StreamTail } from '../model/position.ts'
import { followQuery, historyQuery, type ReadQuery } from '../model/read-query.ts'
import { assertMembers, type MembersOf } from '../model/validation.ts'
import { type AnySignal, unlessAborted } from '../runtime/abort.ts'
import { isPromise, type MaybePromise } from '../runtime/maybe-promise.ts'
import type { ReadBatch } from '../storage/record-batch.ts'
import { type AppendAllOptions, appendAll, type InputSink, inputSink } from './append-all.ts'
import type { AppendOptions, AppendSession } from './append-session.ts'
import type { CallOptions } from './call-options.ts'
import { encodeEach, type JsonCodec, type JsonRecord, OrderedEncoder } from './json-codec.ts'
import { JsonAppendSession, JsonProducer } from './json-writers.ts'
import type { Producer, ProducerOptions } from './producer.ts'
import { READ_OPTIONS, type ReadOptions, ReadSession } from './read-session.ts'
import type { CursorOptions, RecordCursor } from './record-cursor.ts'
import { readableOf, writableTo } from './web-streams.ts'

/** Consecutive records of a read, without commands. */
export interface JsonBatch<Value> {
  /** The records, in order. Empty if all records of the batch are commands. */
  readonly records: readonly JsonRecord<Value>[]
  /** The sequence number of the last record, commands included; -1 if there is none. */
  readonly lastSeqNum: number
  /** The tail of the stream, if the batch was read as it was appended or ends at the tail. */
  readonly tail: StreamPosition | undefined
}

/** Options of the reads of a {@link JsonStream}. */
export type JsonReadOptions = Pick<ReadOptions, 'create' | 'signal'>

const JSON_READ_OPTIONS: MembersOf<JsonReadOptions> = {
  create: READ_OPTIONS.create,
  signal: READ_OPTIONS.signal,
}

/** The part of a stream that a `JsonStream` uses. */
export interface JsonStreamContext {
  equals(other: unknown): boolean
  append(records: readonly RecordInput[], options?: AppendOptions): Promise<AppendAck>
  appendSession(options?: CallOptions): Promise<AppendSession>
  producer(options?: ProducerOptions): Producer
  fence(token: string, options?: AppendOptions): Promise<AppendAck>
  trim(seqNum: number, options?: AppendOptions): Promise<AppendAck>
  close(options?: AppendOptions): Promise<AppendAck>
  checkTail(options?: CallOptions): Promise<StreamTail>
  openCursor(query: ReadQuery, options: CursorOptions): Promise<RecordCursor | undefined>
  readUnary(
    query: ReadQuery,
    options: CursorOptions & { readonly signal?: AbortSignal | undefined },
  ): Promise<ReadBatch>
}

/**
 * A stream of JSON values, made by `stream.json()`. Each record has one value as its body. Its methods are
 * those of `Stream`, with values in place of records, and have the same errors. In addition:
 *
 * - `invalid` for a value that is not JSON or does not match the schema; nothing is appended
 * - `undecodable_record`, with `seqNum`, for a record that is not JSON or does not match the schema; the read
 *   ends
 *
 * With a schema, its output is appended and returned. Reading validates what was appended, so a schema that
 * transforms must accept its own output. Reads leave out command records.
 */
export class JsonStream<Value, Input = Value> {
  readonly #stream: JsonStreamContext
  readonly #codec: JsonCodec<Value>
  readonly #closing: AnySignal
  readonly #order = new OrderedEncoder()

  /** @internal */
  constructor(stream: JsonStreamContext, codec: JsonCodec<Value>, closing: AnySignal) {
    this.#stream = stream
    this.#codec = codec
    this.#closing = closing
  }

  /** @internal Returns whether the other handle makes the same calls, by the same schema. */
  equals(other: unknown): boolean {
    if (!(other instanceof JsonStream)) return false
    return this.#stream.equals(other.#stream) && this.#codec.schema === other.#codec.schema
  }

  /** @internal Returns the stream that the values are read from. */
  get stream(): JsonStreamContext {
    return this.#stream
  }

  /** @internal Converts records that were read from the stream. Commands are left out. */
  decodeBatch(batch: ReadBatch): Promise<JsonRecord<Value>[]> {
    return this.#codec.decode(batch.records)
  }

  /** Appends one value. An array is one value; `appendBatch` appends several. */
  append(value: Input, options?: AppendOptions): Promise<AppendAck> {
    return this.#append(() => this.#encode([value]), options)
  }

  /** Appends 1 to 1,000 values, which are stored together or not at all. */
  appendBatch(values: readonly Input[], options?: AppendOptions): Promise<AppendAck> {
    return this.#append(() => {
      if (!Array.isArray(values)) throw invalid('`values` must be an array', 'values')
      // One more than a batch can have is enough to reject it.
      return this.#encode(values.slice(0, BATCH_RECORDS_MAX + 1))
    }, options)
  }

  /** Appends values from an iterable, each as a batch of its own, and yields their acks in order. */
  appendAll(
    values: AsyncIterable<Input> | Iterable<Input>,
    options: AppendAllOptions = {},
  ): AsyncGenerator<AppendAck, void, undefined> {
    return appendAll(values, this.#sink(options))
  }

  /** Opens a session of pipelined appends, one value each. */
  async appendSession(options?: CallOptions): Promise<JsonAppendSession<Input>> {
    const session = await this.#stream.appendSession(options)
    return new JsonAppendSession<Input>(session, (value) => this.#encodeOne(value))
  }

  /** Makes a producer, which collects values into batches. Throws `invalid` for options out of range. */
  producer(options?: ProducerOptions): JsonProducer<Input> {
    return new JsonProducer<Input>(this.#stream.producer(options), (value) => this.#encodeOne(value))
  }

  /** Sets the fencing token: see `Stream.fence`. */
  fence(token: string, options?: AppendOptions): Promise<AppendAck> {
    return this.#stream.fence(token, options)
  }

  /** Removes all records below `seqNum`: see `Stream.trim`. */
  trim(seqNum: number, options?: AppendOptions): Promise<AppendAck> {
    return this.#stream.trim(seqNum, options)
  }

  /** Closes the stream for good: see `Stream.close`. */
  close(options?: AppendOptions): Promise<AppendAck> {
    return this.#stream.close(options)
  }

  /** Resolves to the tail: see `Stream.checkTail`. */
  checkTail(options?: CallOptions): Promise<StreamTail> {
    return this.#stream.checkTail(options)
  }

  /** Makes a session that reads what the stream holds now, and then ends: see `Stream.read`. */
  read(query: ReadQuery = {}, options?: JsonReadOptions): ReadSession<JsonRecord<Value>, JsonBatch<Value>> {
    return this.#session(() => historyQuery(query), options)
  }

  /** Makes a session that follows the stream: see `Stream.follow`. */
  follow(query: ReadQuery = {}, options?: JsonReadOptions): ReadSession<JsonRecord<Value>, JsonBatch<Value>> {
    return this.#session(() => followQuery(query), options)
  }

  /** Reads one batch: see `Stream.readBatch`. */
  async readBatch(query: ReadQuery = {}, options: JsonReadOptions = {}): Promise<JsonBatch<Value>> {
    assertMembers(options, JSON_READ_OPTIONS, 'options')
    return this.#decode(
      await this.#stream.readUnary(historyQuery(query), { ...options, allowsEmpty: 'always' }),
    )
  }

  /** Returns a `ReadableStream` of the records that `follow` yields: see `Stream.readable`. */
  readable(query?: ReadQuery, options?: JsonReadOptions): ReadableStream<JsonRecord<Value>> {
    return readableOf(this.follow(query, options)[Symbol.asyncIterator]())
  }

  /** Returns a `WritableStream` whose chunks are appended, each as one value: see `Stream.writable`. */
  writable(options: AppendAllOptions = {}): WritableStream<Input> {
    return writableTo(this.#sink(options))
  }

  #sink(options: AppendAllOptions): InputSink<Input> {
    return inputSink(this.#stream, options, this.#closing, (value) => this.#encodeOne(value))
  }

  #session(
    queryOf: () => ReadQuery,
    options: JsonReadOptions = {},
  ): ReadSession<JsonRecord<Value>, JsonBatch<Value>> {
    assertMembers(options, JSON_READ_OPTIONS, 'options')
    const { create, signal } = options
    return new ReadSession(
      (heartbeats) => {
        const query = queryOf()
        return this.#stream.openCursor(query, { heartbeats, create, allowsEmpty: 'always' })
      },
      (batch) => this.#decode(batch),
      signal,
    )
  }

  async #append(
    encode: () => MaybePromise<readonly string[]>,
    options: AppendOptions | undefined,
  ): Promise<AppendAck> {
    return this.#order.run(encode(), (bodies) => this.#stream.append(bodies, options), options?.signal)
  }

  #encode(values: readonly unknown[]): MaybePromise<readonly string[]> {
    return encodeEach(values, (value) => this.#encodeOne(value))
  }

  /** Stops waiting for the schema when the engine closes. */
  #encodeOne(value: unknown): MaybePromise<string> {
    const body = this.#codec.encode(value)
    return isPromise(body) ? unlessAborted(this.#closing, body) : body
  }

  async #decode(batch: ReadBatch): Promise<JsonBatch<Value>> {
    const { lastSeqNum, tail } = batch
    return { records: await this.#codec.decode(batch.records), lastSeqNum, tail }
  }
}
