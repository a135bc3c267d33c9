import type { CallOptions } from '../../src/api/call-options.ts'
import type { Headwater } from '../../src/api/headwater.ts'
import type { Stream } from '../../src/api/stream.ts'
import { basinConfig, mergeStreamConfig, SYSTEM_STREAM_CONFIG } from '../../src/core/config.ts'
import {
  type Engine,
  HeadwaterError,
  type RestoredStream,
  type SequencedRecord,
  type StreamPosition,
  type StreamTail,
} from '../../src/index.ts'
import { compareUtf8, EMPTY_BYTES } from '../../src/model/bytes.ts'
import type { BasinConfig, Cipher, StreamConfig } from '../../src/model/config.ts'
import type { ListQuery, Page, StreamInfo } from '../../src/model/info.ts'
import { INTEGER_MAX, READ_RECORDS_MAX } from '../../src/model/limits.ts'
import { timeText } from '../../src/wire/json.ts'
import { TransferError } from './transfer-error.ts'

export interface ServiceOptions {
  /** The key in base64, used only for records of encrypted streams. */
  readonly encryptionKey?: string | undefined
  /** Ends the transfer, and aborts a request in flight. */
  readonly signal?: AbortSignal | undefined
  /** Describes an error of a call. Its message and its code by default. */
  readonly describe?: ((error: HeadwaterError) => string) | undefined
}

export interface StreamPath {
  readonly basin: string
  readonly name: string
}

/** A stream in a list. */
export interface ListedStream extends StreamPath {
  /** The cipher of its records. */
  readonly cipher: Cipher | null
  /** RFC 3339. */
  readonly createdAt: string | undefined
  /** Those of its creation. Undefined if there are none, and for a client, to which no list shows them. */
  readonly metadata?: StreamInfo['metadata'] | undefined
  readonly expiry?: StreamInfo['expiry'] | undefined
}

/** A stream and whether calls for its records need the key. */
type RecordsRef = StreamPath & Pick<ListedStream, 'cipher'>

export interface NameRange {
  readonly prefix: string
  readonly startAfter?: string | undefined
  readonly limit?: number | undefined
}

/**
 * A fencing token that no stream has. An append with this token and the highest sequence number always fails.
 */
const NO_FENCING_TOKEN = 'headwater export asks for the token'

const MISSING: readonly unknown[] = ['stream_not_found', 'basin_not_found']

/**
 * The operations that transfers need, of an engine or a client. Every method rejects with
 * {@link TransferError}. Nothing is created unless a method says so.
 */
export class Service {
  /** Creates a stream that starts above 0. Undefined for a client: the protocol has no such operation. */
  readonly restoreStream: ((ref: StreamPath, restored: RestoredStream) => Promise<unknown>) | undefined
  readonly hasKey: boolean
  readonly #hw: Headwater
  readonly #options: ServiceOptions

  constructor(hw: Headwater, options: ServiceOptions = {}) {
    const engine = 'restoreStream' in hw ? (hw as Engine) : undefined
    // Without the default retention of the owner, which a basin that has none would get.
    this.#hw = engine?.onConnection({}) ?? hw
    this.#options = options
    this.hasKey = options.encryptionKey !== undefined
    this.restoreStream =
      engine &&
      ((ref, restored) =>
        this.#call(streamLabel(ref), (options) =>
          engine.onConnection({}).restoreStream({ basin: ref.basin, stream: ref.name }, restored, options),
        ))
  }

  /** Lists names in the order of their UTF-8 bytes, without basins that are being deleted. */
  async *basins(range: NameRange): AsyncGenerator<string> {
    const list = (query: ListQuery, options: CallOptions) => this.#hw.listBasins(query, options)
    for await (const { name, state } of this.#list('the list of basins', range, list)) {
      if (state !== 'deleting') yield name
    }
  }

  async *streams(basin: string, range: NameRange): AsyncGenerator<ListedStream> {
    const list = (query: ListQuery, options: CallOptions) => this.#hw.basin(basin).listStreams(query, options)
    for await (const info of this.#list(`the list of streams of basin ${basin}`, range, list)) {
      const { name, cipher, createdAt, deletedAt, metadata, expiry } = info
      if (deletedAt !== null) continue
      yield { basin, name, cipher, createdAt: timeText(createdAt), metadata, expiry }
    }
  }

  async findStream({ basin, name }: StreamPath): Promise<ListedStream | undefined> {
    for await (const facts of this.streams(basin, { prefix: name, limit: 1 })) {
      return facts.name === name ? facts : undefined
    }
    return undefined
  }

  /** Resolves to undefined if the basin does not exist. */
  async basinConfig(basin: string): Promise<BasinConfig | undefined> {
    const call = (options: CallOptions) => this.#hw.basin(basin).storedConfig(options)
    const config = await this.#unlessMissing(`basin ${basin}`, call)
    if (config === undefined) return undefined
    const { storageClass } = SYSTEM_STREAM_CONFIG
    return basinConfig({ ...config, defaultStreamConfig: { storageClass, ...config.defaultStreamConfig } })
  }

  /** Creates or reconfigures a basin. With `uninterrupted`, completes even if the transfer is aborted. */
  async ensureBasin(
    basin: string,
    config: BasinConfig,
    { uninterrupted = false }: { readonly uninterrupted?: boolean | undefined } = {},
  ): Promise<void> {
    const call = (options: CallOptions) => this.#hw.ensureBasin(basin, config, options)
    await this.#call(`basin ${basin}`, call, uninterrupted)
  }

  /** Resolves to undefined if the stream does not exist. */
  async streamConfig(ref: StreamPath): Promise<StreamConfig | undefined> {
    const call = (options: CallOptions) => this.#stream(ref).storedConfig(options)
    const config = await this.#unlessMissing(streamLabel(ref), call)
    return config && mergeStreamConfig(config, {})
  }

  async ensureStream(ref: StreamPath, config: StreamConfig): Promise<void> {
    const { basin, name } = ref
    await this.#call(streamLabel(ref), (options) => this.#hw.basin(basin).ensureStream(name, config, options))
  }

  /** Resolves to undefined if the stream does not exist. */
  tail(ref: StreamPath): Promise<StreamTail | undefined> {
    return this.#unlessMissing(streamLabel(ref), (options) => this.#stream(ref).checkTail(options))
  }

  /** Reads 1 to `count` records from a position on. Resolves to the tail if there are none. */
  async read(
    stream: RecordsRef,
    seqNum: number,
    count = READ_RECORDS_MAX,
  ): Promise<{ readonly records: readonly SequencedRecord[] } | { readonly tail: StreamPosition }> {
    try {
      const { records, tail } = await this.#call(streamLabel(stream), (options) =>
        this.#stream(stream).readBatch({ seqNum, count }, { as: 'bytes', ...options }),
      )
      if (records.length > 0) return { records }
      if (tail !== undefined) return { tail }
    } catch (error) {
      const tail = causeOf(error)?.tail
      if (tail === undefined) throw error
      return { tail }
    }
    throw new TransferError(`${streamLabel(stream)}: the service returned no records`)
  }

  /** Appends at the positions of the records. Retries do not append twice. */
  async append(stream: RecordsRef, records: readonly SequencedRecord[]): Promise<void> {
    const about = streamLabel(stream)
    const first = records[0]!
    const last = records.at(-1)!
    const end = { seqNum: last.seqNum + 1, timestamp: last.timestamp }
    const inputs = records.map(({ timestamp, headers, body }) => ({ timestamp, headers, body }))
    try {
      const ack = await this.#call(about, (options) =>
        this.#stream(stream).append(inputs, { matchSeqNum: first.seqNum, ...options }),
      )
      checkEnd(ack.end, end, about)
    } catch (error) {
      const { code, seqNum, mayHaveEffects } = causeOf(error) ?? {}
      if (code !== 'seq_num_mismatch' && code !== 'fencing_token_mismatch') throw error
      // An earlier attempt has succeeded, and the token does not permit to read what it has stored.
      if (mayHaveEffects && seqNum === end.seqNum) return checkEnd(await this.tail(stream), end, about)
      throw concurrentAppend(stream, seqNum ?? 'fenced', first.seqNum)
    }
  }

  /**
   * Reads the fencing token by an append that always fails. Empty without one; undefined if the caller may
   * not append.
   */
  async fencingToken(stream: RecordsRef): Promise<string | undefined> {
    const about = streamLabel(stream)
    const conditions = { matchSeqNum: INTEGER_MAX, fencingToken: NO_FENCING_TOKEN }
    try {
      await this.#call(about, (options) =>
        this.#stream(stream).append({ body: EMPTY_BYTES, timestamp: 0 }, { ...conditions, ...options }),
      )
    } catch (error) {
      const { code, fencingToken } = causeOf(error) ?? {}
      if (code === 'fencing_token_mismatch') return fencingToken
      if (code === 'seq_num_mismatch') return NO_FENCING_TOKEN
      if (code === 'permission_denied' || MISSING.includes(code)) return undefined
      // No append will need it.
      if (code === 'stream_closed') return undefined
      throw error
    }
    throw new TransferError(`${about}: unexpected success of an append whose conditions do not hold`)
  }

  #stream({ basin, name, cipher }: StreamPath & Partial<RecordsRef>): Stream {
    const { encryptionKey } = this.#options
    const handle = this.#hw.basin(basin, { autoCreate: false })
    return handle.stream(name, cipher == null ? {} : { encryptionKey })
  }

  async *#list<Item extends { readonly name: string }>(
    about: string,
    { prefix, startAfter: after = '', limit = 1000 }: NameRange,
    list: (query: ListQuery, options: CallOptions) => Promise<Page<Item>>,
  ): AsyncGenerator<Item> {
    for (let startAfter = after; ; ) {
      const { items, hasMore } = await this.#call(about, (options) =>
        list({ prefix, startAfter, limit }, options),
      )
      for (const item of items) {
        // Without progress, the next page could be the same one, forever.
        if (compareUtf8(item.name, startAfter) <= 0) throw new TransferError(`${about} is out of order`)
        startAfter = item.name
        yield item
      }
      if (!hasMore || items.length === 0 || limit === 1) return
    }
  }

  async #unlessMissing<Value>(
    about: string,
    call: (options: CallOptions) => Promise<Value>,
  ): Promise<Value | undefined> {
    try {
      return await this.#call(about, call)
    } catch (error) {
      if (MISSING.includes(causeOf(error)?.code)) return undefined
      throw error
    }
  }

  async #call<Value>(
    about: string,
    call: (options: CallOptions) => Promise<Value>,
    uninterrupted = false,
  ): Promise<Value> {
    const { describe = ({ message, code }) => `${message} (${code})` } = this.#options
    const signal = uninterrupted ? undefined : this.#options.signal
    try {
      signal?.throwIfAborted()
      return await call({ signal })
    } catch (cause) {
      if (signal?.aborted) throw new TransferError('interrupted', { kind: 'aborted' })
      if (!HeadwaterError.is(cause)) throw cause
      throw new TransferError(`${about}: ${describe(cause)}`, { code: cause.code, cause })
    }
  }
}

/** Names a stream in messages. */
export function streamLabel({ basin, name }: StreamPath): string {
  return `stream ${name} of basin ${basin}`
}

export function concurrentAppend(ref: StreamPath, tail: number | 'fenced', expected: number): TransferError {
  const tails = `its tail is ${tail}, not ${expected}`
  return new TransferError(`${streamLabel(ref)}: another client appends to it: ${tails}`, {
    kind: 'conflict',
  })
}

/** The error of the call that made a transfer fail. */
function causeOf(error: unknown): HeadwaterError | undefined {
  const cause = error instanceof TransferError ? error.cause : undefined
  return HeadwaterError.is(cause) ? cause : undefined
}

function checkEnd(actual: StreamPosition | undefined, wanted: StreamPosition, about: string): void {
  if (actual?.seqNum === wanted.seqNum && actual.timestamp === wanted.timestamp) return
  throw new TransferError(
    `${about}: records were stored at other positions or times: it ends at ${actual?.seqNum} ` +
      `with timestamp ${actual?.timestamp}, not at ${wanted.seqNum} with ${wanted.timestamp}`,
  )
}
