import type { RecordInput } from '../../model/append-input.ts'
import { invalid } from '../../model/errors.ts'
import type { AppendAck } from '../../model/info.ts'
import { BATCH_RECORDS_MAX } from '../../model/limits.ts'
import type { StreamPosition } from '../../model/position.ts'
import type { ReadQuery } from '../../model/read-query.ts'
import { assertMembers, assertSignal } from '../../model/validation.ts'
import { type AnySignal, unlessAborted } from '../../runtime/abort.ts'
import { isPromise, type MaybePromise } from '../../runtime/maybe-promise.ts'
import { SerialQueue } from '../../runtime/serial-queue.ts'
import type { ReadBatch } from '../../storage/record-batch.ts'
import type { ReadCursor } from '../log/read-cursor.ts'
import { APPEND_ALL_OPTIONS, appendAll } from './append-all.ts'
import type { AppendOptions, AppendSession } from './append-session.ts'
import { type CallOptions, signalOf } from './call-options.ts'
import type { JsonCodec, JsonRecord } from './json-codec.ts'
import { type ReadOptions, RecordSession } from './read-session.ts'

/** Consecutive records of a read, without commands. */
export interface JsonBatch<Value> {
  /** The records, in order. Empty if all records of the batch are commands. */
  readonly records: readonly JsonRecord<Value>[]
  /** The sequence number of the last record, commands included; -1 if there is none. */
  readonly lastSeqNum: number
  /**
   * The tail of the stream, if the batch was read as it was appended, or if it ends at the tail. Otherwise
   * undefined.
   */
  readonly tail: StreamPosition | undefined
}

/** A read session whose records have JSON values. */
export type JsonReadSession<Value> = RecordSession<JsonRecord<Value>, JsonBatch<Value>>

/** The part of a stream that a `JsonStream` uses. */
export interface JsonStreamContext {
  equals(other: unknown): boolean
  append(records: readonly RecordInput[], options?: AppendOptions): Promise<AppendAck>
  appendSession(options?: CallOptions): Promise<AppendSession>
  read(query: ReadQuery, options: ReadOptions & { readonly as: 'bytes' }): Promise<ReadBatch<'bytes'>>
  openRead(
    query: ReadQuery | undefined,
    options: { readonly heartbeats: boolean },
  ): Promise<ReadCursor | undefined>
}

/**
 * A stream of JSON values, made by `stream.json()`. Each record has one value as its body. Its methods are
 * those of `Stream`, with values in place of records, and have the same errors. In addition:
 *
 * - `invalid` for a value that is not JSON or does not match the schema; nothing is appended
 * - `bad_json`, with `seqNum`, for a record that is not JSON or does not match the schema; the read ends
 *
 * With a schema, its output is appended and returned. Reading validates what was appended, so a schema that
 * transforms must accept its own output.
 */
export class JsonStream<Value, Input = Value> {
  readonly #stream: JsonStreamContext
  readonly #codec: JsonCodec<Value>
  readonly #closing: AnySignal
  /** Keeps appends in order while asynchronous schemas validate. */
  readonly #appends = new SerialQueue()
  #validating = 0

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
    options: Pick<AppendOptions, 'fencingToken' | 'signal'> = {},
  ): AsyncGenerator<AppendAck, void, undefined> {
    assertMembers(options, APPEND_ALL_OPTIONS, 'options')
    const { fencingToken, signal } = options
    return appendAll(values, {
      open: () => this.#stream.appendSession({ signal }),
      submit: async (session, value) => session.submit(await this.#codec.encode(value), { fencingToken }),
      signals: [this.#closing, signal],
    })
  }

  /** Reads one batch. */
  async read(query: ReadQuery = {}, options?: CallOptions): Promise<JsonBatch<Value>> {
    return this.#decode(await this.#stream.read(query, { as: 'bytes', signal: signalOf(options) }))
  }

  /** Makes a session that reads history and then follows live, unless the query is bounded. */
  readSession(query?: ReadQuery, options?: CallOptions): JsonReadSession<Value> {
    return new RecordSession(
      (heartbeats) => this.#stream.openRead(query, { heartbeats }),
      (batch) => this.#decode(batch),
      signalOf(options),
    )
  }

  #append(
    encode: () => MaybePromise<readonly string[]>,
    options: AppendOptions | undefined,
  ): Promise<AppendAck> {
    try {
      const encoded = encode()
      if (!isPromise(encoded) && this.#validating === 0) return this.#stream.append(encoded, options)
      const signal = options?.signal
      if (signal !== undefined) assertSignal(signal, 'signal', invalid)
      const encoding = unlessAborted(this.#closing, Promise.resolve(encoded))
      // Its rejection is handled when its turn comes.
      encoding.catch(() => {})
      this.#validating++
      let acked: Promise<AppendAck> | undefined
      const turn = this.#appends.run(async () => {
        try {
          const bodies = await unlessAborted(signal, encoding)
          acked = this.#stream.append(bodies, options)
          acked.catch(() => {})
        } finally {
          this.#validating--
        }
      })
      return turn.then(() => acked!)
    } catch (error) {
      return Promise.reject(error)
    }
  }

  #encode(values: readonly unknown[]): MaybePromise<readonly string[]> {
    const bodies = Array.from(values, (value) => this.#codec.encode(value))
    return bodies.some(isPromise) ? Promise.all(bodies) : (bodies as string[])
  }

  async #decode(batch: ReadBatch): Promise<JsonBatch<Value>> {
    const { lastSeqNum, tail } = batch
    return { records: await this.#codec.decode(batch.records), lastSeqNum, tail }
  }
}
