import { type CallOptions, signalOf } from '../../src/api/call-options.ts'
import { encodeEach, JsonCodec, OrderedEncoder, type StandardSchema } from '../../src/api/json-codec.ts'
import type { Stream } from '../../src/api/stream.ts'
import type { RecordInput } from '../../src/model/append-input.ts'
import { assertValid, type HeadwaterError, invalid } from '../../src/model/errors.ts'
import type { RecordFormat } from '../../src/model/record.ts'
import { assertMembers, type MembersOf, oneOf } from '../../src/model/validation.ts'
import { unlessAborted } from '../../src/runtime/abort.ts'
import { OUTBOX_PREFIX, outboxNameProblem } from '../../src/sync/basin.ts'
import { assertStart, type MirrorStart } from '../../src/sync/mirror.ts'
import type { BytesContent, JsonContent, TextContent } from '../../src/sync/synced-record.ts'
import { type Mirror, type MirrorOptions, mirror } from './mirror.ts'
import {
  assertEnds,
  assertOutboxOptions,
  OUTBOX_OPTIONS,
  Outbox,
  type OutboxAppend,
  type OutboxOptions,
} from './outbox.ts'
import { bytesContent, type ContentCodec, jsonContent, textContent } from './synced-changes.ts'
import { SyncedReader } from './synced-reader.ts'

/** Options of `syncedStream`. */
export interface SyncedStreamOptions<Format extends RecordFormat = RecordFormat> extends OutboxOptions {
  /** The type of bodies and headers: `'string'` by default, or `'bytes'`. */
  readonly as?: Format | undefined
  /** The start of a copy that has no records yet: see `mirror`. By default, the first record. */
  readonly from?: MirrorStart | undefined
}

const SYNCED_STREAM_OPTIONS: MembersOf<SyncedStreamOptions> = {
  ...OUTBOX_OPTIONS,
  as: oneOf(['string', 'bytes']),
  from: assertStart,
}

/** The content of the records of a synced stream in a format. */
export type ContentOf<Format extends RecordFormat> = Format extends 'bytes' ? BytesContent : TextContent

/** The parts of a synced stream. */
export interface SyncedParts {
  readonly mirror: Mirror
  readonly outbox: Outbox
  /** Ends both, and waits until they have ended. */
  readonly close: () => Promise<void>
}

/**
 * A stream on this device that is kept in sync with the stream of a server, in both directions. Returned by
 * {@link syncedStream}.
 */
export class SyncedStream<Format extends RecordFormat = 'string'> extends SyncedReader<ContentOf<Format>> {
  readonly #close: () => Promise<void>

  /** @internal */
  constructor(parts: SyncedParts, as: RecordFormat) {
    const codec: ContentCodec<BytesContent | TextContent> = as === 'bytes' ? bytesContent : textContent
    super(parts, codec as ContentCodec<ContentOf<Format>>)
    this.#close = parts.close
  }

  /**
   * Appends one record, or a batch of records. Resolves when the batch is durable on this device; its
   * `confirmed()` resolves when it is on the server.
   *
   * Errors:
   * - `invalid` for records that break a rule or a limit, and for command records
   * - `outbox_full` when the limits of the outbox are reached
   * - `storage`, `storage_full` when the local storage fails
   * - `closed` once the synced stream is closed
   *
   * ```ts
   * const appended = await chat.append('hello')
   * const { start } = await appended.confirmed()
   * ```
   */
  append(records: RecordInput | readonly RecordInput[], options?: CallOptions): Promise<OutboxAppend> {
    return this.outbox.append(records, options)
  }

  /**
   * Returns a view of the stream for JSON values: of a type, or of the output of a Standard Schema. Throws
   * `invalid` for an object that is not a schema.
   *
   * ```ts
   * const tasks = todo.json<{ readonly title: string }>()
   * await tasks.append({ title: 'Water the plants' })
   * ```
   */
  json<Value = unknown>(options?: SyncedJsonOptions): SyncedJsonStream<Value>
  json<Input, Value>(
    schema: StandardSchema<Input, Value>,
    options?: SyncedJsonOptions,
  ): SyncedJsonStream<Value, Input>
  json<Input, Value>(
    first?: StandardSchema<Input, Value> | SyncedJsonOptions,
    second?: SyncedJsonOptions,
  ): SyncedJsonStream<Value, Input> {
    const isOptions = typeof first === 'object' && first !== null && !('~standard' in first)
    const options = (isOptions ? first : second) ?? {}
    assertMembers(options, { onUndecodable: 'function' } satisfies MembersOf<SyncedJsonOptions>, 'options')
    const codec = new JsonCodec<Value>(isOptions ? undefined : first)
    return new SyncedJsonStream<Value, Input>(this, codec, options)
  }

  /** Ends the sync. Pending records stay on this device. Neither stream is closed. */
  async close(options?: CallOptions): Promise<void> {
    const signal = signalOf(options)
    await unlessAborted(signal, this.#close())
  }

  /** Closes the stream for `await using`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.#close()
  }
}

/** Options of `json` of a synced stream. */
export interface SyncedJsonOptions {
  /**
   * Receives the error of each record that is not JSON or does not match the schema, and skips the record. By
   * default, such a record ends reads with `undecodable_record`.
   */
  readonly onUndecodable?: ((error: HeadwaterError) => void) | undefined
}

/** A view of a synced stream for JSON values, returned by `synced.json()`. */
export class SyncedJsonStream<Value, Input = Value> extends SyncedReader<JsonContent<Value>> {
  readonly #codec: JsonCodec<Value>
  readonly #order = new OrderedEncoder()

  /** @internal */
  constructor(
    parts: Pick<SyncedParts, 'mirror' | 'outbox'>,
    codec: JsonCodec<Value>,
    { onUndecodable }: SyncedJsonOptions,
  ) {
    super(parts, jsonContent(codec, onUndecodable))
    this.#codec = codec
  }

  /** @internal Returns whether the other view reads the same stream by the same schema. */
  equals(other: unknown): boolean {
    if (!(other instanceof SyncedJsonStream)) return false
    return other.outbox === this.outbox && other.#codec.schema === this.#codec.schema
  }

  /** Appends one value. An array is one value; `appendBatch` appends several. See `SyncedStream.append`. */
  append(value: Input, options?: CallOptions): Promise<OutboxAppend> {
    return this.#append([value], options)
  }

  /** Appends 1 to 1,000 values, which are stored together or not at all. */
  async appendBatch(values: readonly Input[], options?: CallOptions): Promise<OutboxAppend> {
    if (!Array.isArray(values)) throw invalid('`values` must be an array', 'values')
    return this.#append(values, options)
  }

  async #append(values: readonly Input[], options: CallOptions | undefined): Promise<OutboxAppend> {
    const encoded = encodeEach(values, (value) => this.#codec.encode(value))
    return this.#order.run(encoded, (records) => this.outbox.append(records, options))
  }
}

/**
 * Keeps a stream of this device in sync with a stream of a server, in both directions. `remote` is a stream
 * of a client, `local` one of an engine, to which nothing else appends. Tabs that sync the same stream share
 * one connection. Connects in the background: see `state`.
 *
 * Throws `invalid` for options that are not valid, and for a local name of more than 504 bytes.
 *
 * ```ts
 * const server = await connect({ url: 'https://streams.example' })
 * const hw = await open({ storage: indexedDb('my-app') })
 * const chat = syncedStream(server.basin('my-app').stream('chat'), hw.basin('my-app').stream('chat'))
 * await chat.append('written offline or online')
 * ```
 */
export function syncedStream<Format extends RecordFormat = 'string'>(
  remote: Stream,
  local: Stream,
  options: SyncedStreamOptions<Format> = {},
): SyncedStream<Format> {
  assertOutboxOptions(options, SYNCED_STREAM_OPTIONS)
  assertEnds(remote, local)
  const { as = 'string', ...others } = options
  return new SyncedStream<Format>(syncedParts(remote, local, others), as)
}

/** @internal Starts a mirror, and an outbox that sends while the mirror is live. */
export function syncedParts(
  remote: Stream,
  local: Stream,
  options: Omit<SyncedStreamOptions, 'as'> & Pick<MirrorOptions, 'create' | 'mayConnect'>,
): SyncedParts {
  const { from, create, mayConnect, signal, random, coordinator, wakeUps } = options
  assertValid(outboxNameProblem(local.name), 'local')
  const log = local.sibling(OUTBOX_PREFIX + local.name)
  const outbox = new Outbox(log, remote, options, local)
  const copying = { from, create, mayConnect, signal, random, coordinator, wakeUps, outbox }
  const copy = mirror(remote, local, copying)
  let closed: Promise<void> | undefined
  const close = () => {
    closed ??= Promise.all([outbox.close(), copy.close()]).then(() => {})
    return closed
  }
  return { mirror: copy, outbox, close }
}
