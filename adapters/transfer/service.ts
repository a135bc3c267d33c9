import type { CallOptions } from '../../src/api/call-options.ts'
import type { Headwater } from '../../src/api/headwater.ts'
import { listAll } from '../../src/api/lists.ts'
import type { Stream } from '../../src/api/stream.ts'
import { basinConfig, mergeStreamConfig } from '../../src/core/config.ts'
import {
  type Engine,
  type ErrorCode,
  HeadwaterError,
  type SequencedRecord,
  type StreamPosition,
  type StreamTail,
} from '../../src/index.ts'
import type { ResourceSet } from '../../src/model/access.ts'
import { EMPTY_BYTES } from '../../src/model/bytes.ts'
import type { BasinConfig, StreamConfig } from '../../src/model/config.ts'
import type { ListQuery, Page, RestoredStream, StreamInfo } from '../../src/model/info.ts'
import { INTEGER_MAX, READ_RECORDS_MAX } from '../../src/model/limits.ts'

/** The failure of a transfer. The message may contain text from a service or a file, but no secrets. */
export class TransferError extends Error {
  override readonly name = 'TransferError'
}

export interface TransferFilter {
  readonly basins: ResourceSet
  readonly streams: ResourceSet
}

export const EVERYTHING: TransferFilter = { basins: { prefix: '' }, streams: { prefix: '' } }

export function matchesName(filter: ResourceSet, name: string): boolean {
  return 'prefix' in filter ? name.startsWith(filter.prefix) : name === filter.exact
}

export interface ServiceOptions {
  /** The key in base64, used only for records of encrypted streams. */
  readonly encryptionKey?: string | undefined
  /** Ends the transfer with its reason, and aborts a request in flight. */
  readonly signal?: AbortSignal | undefined
  /** Describes an error of a call. Its message and its code by default. */
  readonly describe?: ((error: HeadwaterError) => string) | undefined
}

export interface StreamPath {
  readonly basin: string
  readonly name: string
}

/** A stream in a list. A client does not see metadata and expiry. */
export type ListedStream = StreamPath & Pick<StreamInfo, 'cipher' | 'createdAt' | 'metadata' | 'expiry'>

/** A stream and whether calls for its records need the key. */
type RecordsRef = StreamPath & Pick<StreamInfo, 'cipher'>

/**
 * A fencing token that no stream has. An append with this token and the highest sequence number always fails.
 */
const NO_FENCING_TOKEN = 'headwater export asks for the token'

const MISSING: readonly ErrorCode[] = ['stream_not_found', 'basin_not_found']
const GONE: readonly ErrorCode[] = [...MISSING, 'stream_deletion_pending', 'basin_deletion_pending']

/**
 * The operations that transfers need, of an engine or a client. Every method rejects with
 * {@link TransferError}. Nothing is created unless a method says so.
 */
export class Service {
  /** Whether streams can begin above 0: the protocol of servers has no such operation. */
  readonly canRestore: boolean
  readonly hasKey: boolean
  readonly #hw: Headwater
  readonly #options: ServiceOptions

  constructor(hw: Headwater, options: ServiceOptions = {}) {
    const engine = 'restoreStream' in hw ? (hw as Engine) : undefined
    // Without the default retention of the owner, which a basin that has none would get.
    this.#hw = engine?.onConnection({}) ?? hw
    this.canRestore = engine !== undefined
    this.hasKey = options.encryptionKey !== undefined
    this.#options = options
  }

  /** Lists names in the order of their UTF-8 bytes, without basins that are being deleted. */
  async *basins(filter: ResourceSet): AsyncGenerator<string> {
    const list = (query: ListQuery, options: CallOptions) => this.#hw.listBasins(query, options)
    for await (const { name, state } of this.#list('the list of basins', filter, list)) {
      if (state !== 'deleting') yield name
    }
  }

  async *streams(basin: string, filter: ResourceSet): AsyncGenerator<ListedStream> {
    const list = (query: ListQuery, options: CallOptions) => this.#hw.basin(basin).listStreams(query, options)
    for await (const info of this.#list(`the list of streams of basin ${basin}`, filter, list)) {
      if (info.deletedAt === null) yield { basin, ...info }
    }
  }

  /** Finds a stream in the list: reading its tail could create it. */
  async findStream({ basin, name }: StreamPath): Promise<ListedStream | undefined> {
    const found = await this.streams(basin, { exact: name }).next()
    return found.done ? undefined : found.value
  }

  /** Resolves to undefined if the basin does not exist. */
  async basinConfig(basin: string): Promise<BasinConfig | undefined> {
    const call = (options: CallOptions) => this.#hw.basin(basin).config(options)
    const config = await this.#unlessMissing(`basin ${basin}`, call)
    return config && basinConfig(config)
  }

  async ensureBasin(basin: string, config: BasinConfig): Promise<void> {
    await this.#call(`basin ${basin}`, (options) => this.#hw.ensureBasin(basin, config, options))
  }

  /** Resolves to undefined if the stream does not exist. */
  async streamConfig(ref: StreamPath): Promise<StreamConfig | undefined> {
    const call = (options: CallOptions) => this.#stream(ref).config(options)
    const config = await this.#unlessMissing(streamLabel(ref), call)
    return config && mergeStreamConfig(config, {})
  }

  async ensureStream(ref: StreamPath, config: StreamConfig): Promise<Pick<StreamInfo, 'cipher'>> {
    const basin = this.#hw.basin(ref.basin)
    const call = (options: CallOptions) => basin.ensureStream(ref.name, config, options)
    return (await this.#call(streamLabel(ref), call)).info
  }

  /** Creates a stream that may begin above 0. Requires {@link canRestore}. */
  async restoreStream(ref: StreamPath, restored: RestoredStream): Promise<void> {
    await this.#call(streamLabel(ref), (options) => this.#stream(ref).restore(restored, options))
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

  /**
   * Appends at the positions of the records. Resolves to whether they keep their times: one in the future of
   * the service becomes its own time, which is smaller. Retries do not append twice.
   */
  async append(stream: RecordsRef, records: readonly SequencedRecord[]): Promise<boolean> {
    const matchSeqNum = records[0]!.seqNum
    const inputs = records.map(({ timestamp, headers, body }) => ({ timestamp, headers, body }))
    const call = (options: CallOptions) => this.#stream(stream).append(inputs, { matchSeqNum, ...options })
    try {
      const { end } = await this.#call(streamLabel(stream), call)
      const { seqNum, timestamp } = records.at(-1)!
      // Times never decrease: if the last one is kept, all are.
      if (end.seqNum === seqNum + 1 && end.timestamp <= timestamp) return end.timestamp === timestamp
    } catch (error) {
      const { code, mayHaveEffects } = causeOf(error) ?? {}
      // An earlier attempt may have stored them.
      if (code !== 'seq_num_mismatch' || mayHaveEffects) throw error
      throw new TransferError(`${(error as Error).message}: another client appends to it`)
    }
    throw new TransferError(`${streamLabel(stream)}: records were stored at other positions or times`)
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
      // No append will need the token of a closed stream.
      if (code === 'permission_denied' || code === 'stream_closed') return undefined
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
    filter: ResourceSet,
    list: (query: ListQuery, options: CallOptions) => Promise<Page<Item>>,
  ): AsyncGenerator<Item> {
    const page = (query: ListQuery) => this.#call(about, (options) => list(query, options))
    if ('prefix' in filter) {
      const all = listAll(filter, page, ({ name }) => name)
      for (;;) {
        const next = await this.#call(about, () => all.next())
        if (next.done) return
        yield next.value
      }
    }
    // An exact name is the first of all names with that prefix.
    const { items } = await page({ prefix: filter.exact, limit: 1 })
    yield* items.filter(({ name }) => name === filter.exact)
  }

  async #unlessMissing<Value>(
    about: string,
    call: (options: CallOptions) => Promise<Value>,
  ): Promise<Value | undefined> {
    try {
      return await this.#call(about, call)
    } catch (error) {
      if (isOneOf(MISSING, error)) return undefined
      throw error
    }
  }

  async #call<Value>(about: string, call: (options: CallOptions) => Promise<Value>): Promise<Value> {
    const { describe = ({ message, code }) => `${message} (${code})`, signal } = this.#options
    try {
      signal?.throwIfAborted()
      return await call({ signal })
    } catch (cause) {
      if (signal?.aborted) throw signal.reason
      if (!HeadwaterError.is(cause)) throw cause
      throw new TransferError(`${about}: ${describe(cause)}`, { cause })
    }
  }
}

export function streamLabel({ basin, name }: StreamPath): string {
  return `stream ${name} of basin ${basin}`
}

/** Whether a stream or its basin does not exist, or is being deleted. */
export function isGone(error: unknown): boolean {
  return isOneOf(GONE, error)
}

function isOneOf(codes: readonly ErrorCode[], error: unknown): boolean {
  const cause = causeOf(error)
  return cause !== undefined && codes.includes(cause.code)
}

/** The error of the call that made a transfer fail. */
function causeOf(error: unknown): HeadwaterError | undefined {
  const cause = error instanceof TransferError ? error.cause : undefined
  return HeadwaterError.is(cause) ? cause : undefined
}
