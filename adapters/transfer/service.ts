import { create, toBinary } from '@bufbuild/protobuf'
import { basinConfig, mergeStreamConfig } from '../../src/core/config.ts'
import {
  HeadwaterError,
  type RestoredStream,
  type SequencedRecord,
  type StreamPosition,
} from '../../src/index.ts'
import { compareUtf8 } from '../../src/model/bytes.ts'
import type { BasinConfig, Cipher, StreamConfig } from '../../src/model/config.ts'
import { INTEGER_MAX, READ_RECORDS_MAX } from '../../src/model/limits.ts'
import { AppendInputSchema } from '../../src/wire/gen/records_pb.ts'
import {
  basinConfigJson,
  cipherOf,
  decodeBasinConfig,
  decodeStreamConfig,
  streamConfigJson,
} from '../../src/wire/json-config.ts'
import {
  arrayOf,
  booleanOf,
  keptStringOf,
  nullable,
  objectOf,
  required,
  stringOf,
} from '../../src/wire/json-members.ts'
import type { JsonObject } from '../../src/wire/json-reader.ts'
import {
  type Call,
  Connection,
  type ConnectionOptions,
  jsonBody,
  type ServiceResponse,
} from './connection.ts'
import {
  ackEndOf,
  decodeJson,
  errorBodyOf,
  errorOf,
  mismatchOf,
  recordsOf,
  tailOf,
  timeTextOf,
} from './responses.ts'
import { TransferError } from './transfer-error.ts'

export interface ServiceOptions extends ConnectionOptions {
  /**
   * Creates a stream that starts above 0. Only for an engine in this process: the HTTP API has no such
   * operation.
   */
  readonly restoreStream?: (ref: StreamRef, restored: RestoredStream) => Promise<unknown>
}

export interface StreamRef {
  readonly basin: string
  readonly name: string
}

/** A stream in a list. */
export interface StreamInfo extends StreamRef {
  /** Of its records. */
  readonly cipher: Cipher | null
  /** RFC 3339; undefined if the service does not return it. */
  readonly createdAt: string | undefined
}

/** A stream and whether requests for its records need the key. */
type RecordsRef = StreamRef & Pick<StreamInfo, 'cipher'>

export interface ListRange {
  readonly prefix: string
  readonly startAfter?: string | undefined
  readonly limit?: number
}

/**
 * A fencing token that no stream has. An append with this token and the highest sequence number always fails.
 */
const NO_FENCING_TOKEN = 'headwater export asks for the token'

/** The operations of the HTTP API that transfers need. Every method rejects with {@link TransferError}. */
export class Service {
  readonly restoreStream: ServiceOptions['restoreStream']
  readonly hasKey: boolean
  readonly #connection: Connection

  constructor(options: ServiceOptions) {
    const { restoreStream } = options
    this.restoreStream =
      restoreStream && ((ref, restored) => asTransferError(streamLabel(ref), restoreStream(ref, restored)))
    this.hasKey = options.encryptionKey !== undefined
    this.#connection = new Connection(options)
  }

  /** Lists names in the order of their UTF-8 bytes, without basins that are being deleted. */
  basins(range: ListRange): AsyncGenerator<string> {
    return this.#list('/basins', range, 'basins', undefined, (item) =>
      required(item, 'state', stringOf) === 'deleting' ? undefined : nameOf(item),
    )
  }

  async *streams(basin: string, range: ListRange): AsyncGenerator<StreamInfo> {
    const items = this.#list('/streams', range, 'streams', basin, (item) => ({
      basin,
      name: nameOf(item),
      cipher: nullable(item, 'cipher', cipherOf) ?? null,
      createdAt: nullable(item, 'created_at', timeTextOf),
      isGone: nullable(item, 'deleted_at', stringOf) !== undefined,
    }))
    for await (const { isGone, ...facts } of items) if (!isGone) yield facts
  }

  async findStream({ basin, name }: StreamRef): Promise<StreamInfo | undefined> {
    for await (const facts of this.streams(basin, { prefix: name, limit: 1 })) {
      return facts.name === name ? facts : undefined
    }
    return undefined
  }

  /** Resolves to undefined if the basin does not exist. */
  async basinConfig(basin: string): Promise<BasinConfig | undefined> {
    const about = `basin ${basin}`
    const response = await this.#call(
      { method: 'GET', path: `/basins/${encodeURIComponent(basin)}` },
      about,
      404,
    )
    if (response.status === 404) return undefined
    return decodeJson(response.body, about, (object) => basinConfig(decodeBasinConfig(object, 'config')))
  }

  /** Creates or reconfigures a basin. With `uninterrupted`, completes even if the transfer is aborted. */
  async ensureBasin(
    basin: string,
    config: BasinConfig,
    { uninterrupted }: { readonly uninterrupted?: boolean } = {},
  ): Promise<void> {
    const body = jsonBody(`{"config":${basinConfigJson(config)}}`)
    const path = `/basins/${encodeURIComponent(basin)}`
    await this.#call({ method: 'PUT', path, body, uninterrupted }, `basin ${basin}`)
  }

  /** Resolves to undefined if the stream does not exist. */
  async streamConfig(ref: StreamRef): Promise<StreamConfig | undefined> {
    const about = streamLabel(ref)
    const response = await this.#call({ method: 'GET', path: streamPath(ref), basin: ref.basin }, about, 404)
    if (response.status === 404) return undefined
    return decodeJson(response.body, about, (object) =>
      mergeStreamConfig(decodeStreamConfig(object, 'config'), {}),
    )
  }

  async ensureStream(ref: StreamRef, config: StreamConfig): Promise<void> {
    const body = jsonBody(streamConfigJson(config))
    await this.#call({ method: 'PUT', path: streamPath(ref), basin: ref.basin, body }, streamLabel(ref))
  }

  /** Resolves to undefined if the stream does not exist. */
  async tail(ref: StreamRef): Promise<StreamPosition | undefined> {
    const path = `${streamPath(ref)}/records/tail`
    const response = await this.#call({ method: 'GET', path, basin: ref.basin }, streamLabel(ref), 404)
    return response.status === 404 ? undefined : tailOf(response.body, streamLabel(ref))
  }

  /** Reads 1 to `count` records from a position on. Resolves to the tail if there are none. */
  async read(
    stream: RecordsRef,
    seqNum: number,
    count = READ_RECORDS_MAX,
  ): Promise<{ readonly records: readonly SequencedRecord[] } | { readonly tail: StreamPosition }> {
    const about = streamLabel(stream)
    const { basin, cipher } = stream
    const path = `${streamPath(stream)}/records?seq_num=${seqNum}&count=${count}`
    const call: Call = {
      method: 'GET',
      path,
      basin,
      withKey: cipher !== null,
      accept: 'application/protobuf',
    }
    const response = await this.#call(call, about, 416)
    if (response.status === 416) return { tail: tailOf(response.body, about) }
    const records = recordsOf(response.body, about)
    let next = seqNum
    let earliest = 0
    for (const record of records) {
      if (record.seqNum < next || record.timestamp < earliest)
        throw new TransferError(`${about}: the service returned records out of order`)
      next = record.seqNum + 1
      earliest = record.timestamp
    }
    if (records.length === 0) throw new TransferError(`${about}: the service returned no records`)
    return { records }
  }

  /** Appends at the positions of the records. Retries do not append twice. */
  async append(stream: RecordsRef, records: readonly SequencedRecord[]): Promise<void> {
    const about = streamLabel(stream)
    const first = records[0]!
    const last = records.at(-1)!
    const end = { seqNum: last.seqNum + 1, timestamp: last.timestamp }
    const bytes = appendInput(records, { matchSeqNum: first.seqNum })
    const response = await this.#call(appendCall(stream, bytes), about, 412)
    if (response.status !== 412) return checkEnd(ackEndOf(response.body, about), end, about)
    const { seqNum } = mismatchOf(response.body, about)
    // An earlier attempt succeeded, and its response was lost.
    if (response.attempts > 1 && seqNum === end.seqNum) return checkEnd(await this.tail(stream), end, about)
    throw concurrentAppend(stream, seqNum ?? 'fenced', first.seqNum)
  }

  /**
   * Reads the fencing token by an append that always fails. Empty without one; undefined if the caller may
   * not append.
   */
  async fencingToken(stream: RecordsRef): Promise<string | undefined> {
    const about = streamLabel(stream)
    const record = { seqNum: 0, timestamp: 0, headers: [], body: new Uint8Array(0) }
    const conditions = { matchSeqNum: INTEGER_MAX, fencingToken: NO_FENCING_TOKEN }
    const response = await this.#connection.call(appendCall(stream, appendInput([record], conditions)))
    if (response.status === 412) return mismatchOf(response.body, about).fencingToken ?? NO_FENCING_TOKEN
    if (response.status === 403 || response.status === 404) return undefined
    throw errorOf(response, about)
  }

  async *#list<Item>(
    path: string,
    { prefix, startAfter = '', limit = 1000 }: ListRange,
    member: string,
    basin: string | undefined,
    decode: (item: JsonObject) => Item | undefined,
  ): AsyncGenerator<Item> {
    const about = basin === undefined ? `the list of ${member}` : `the list of ${member} of basin ${basin}`
    let after = startAfter
    for (;;) {
      const query = new URLSearchParams({ prefix, start_after: after, limit: String(limit) })
      const call: Call = { method: 'GET', path: `${path}?${query}`, ...(basin !== undefined && { basin }) }
      const { body } = await this.#call(call, about)
      const { items, hasMore } = decodeJson(body, about, (page) => ({
        items: required(page, member, arrayOf).map((item) => objectOf(item, member)),
        hasMore: required(page, 'has_more', booleanOf),
      }))
      for (const item of items) {
        const name = jsonOfItem(about, () => nameOf(item))
        // Without progress, the next page could be the same one, forever.
        if (compareUtf8(name, after) <= 0) throw new TransferError(`${about} is out of order`)
        after = name
        const decoded = jsonOfItem(about, () => decode(item))
        if (decoded !== undefined) yield decoded
      }
      if (!hasMore || items.length === 0 || limit === 1) return
    }
  }

  /** Resolves to a successful response, or to one with the expected error status. */
  async #call(call: Call, about: string, expected?: number): Promise<ServiceResponse> {
    const response = await this.#connection.call(call)
    if (response.status >= 200 && response.status < 300) return response
    const isMissing =
      response.status === 404 && (errorBodyOf(response.body)?.code ?? 'not_found') === 'not_found'
    if (response.status === expected && !isMissing) return response
    throw errorOf(response, about)
  }
}

/** Names a stream in messages. */
export function streamLabel({ basin, name }: StreamRef): string {
  return `stream ${name} of basin ${basin}`
}

export function concurrentAppend(ref: StreamRef, tail: number | 'fenced', expected: number): TransferError {
  const tails = `its tail is ${tail}, not ${expected}`
  return new TransferError(`${streamLabel(ref)}: another client appends to it: ${tails}`, {
    kind: 'conflict',
  })
}

async function asTransferError<Value>(about: string, call: Promise<Value>): Promise<Value> {
  try {
    return await call
  } catch (cause) {
    if (!HeadwaterError.is(cause)) throw cause
    throw new TransferError(`${about}: ${cause.message} (${cause.code})`, { cause })
  }
}

function nameOf(item: JsonObject): string {
  return required(item, 'name', keptStringOf)
}

function jsonOfItem<Value>(about: string, decode: () => Value): Value {
  try {
    return decode()
  } catch (cause) {
    throw new TransferError(`${about}: ${(cause as Error).message}`, { cause })
  }
}

function streamPath({ name }: StreamRef): string {
  return `/streams/${encodeURIComponent(name)}`
}

function appendCall(stream: RecordsRef, bytes: Uint8Array): Call {
  return {
    method: 'POST',
    path: `${streamPath(stream)}/records`,
    basin: stream.basin,
    withKey: stream.cipher !== null,
    accept: 'application/protobuf',
    body: { type: 'application/protobuf', bytes },
  }
}

function appendInput(
  records: readonly SequencedRecord[],
  { matchSeqNum, fencingToken }: { readonly matchSeqNum: number; readonly fencingToken?: string },
): Uint8Array {
  const input = create(AppendInputSchema, {
    matchSeqNum: BigInt(matchSeqNum),
    ...(fencingToken !== undefined && { fencingToken }),
    records: records.map(({ timestamp, headers, body }) => ({
      timestamp: BigInt(timestamp),
      headers: headers.map(([name, value]) => ({ name, value })),
      body,
    })),
  })
  return toBinary(AppendInputSchema, input)
}

function checkEnd(actual: StreamPosition | undefined, wanted: StreamPosition, about: string): void {
  if (actual?.seqNum === wanted.seqNum && actual.timestamp === wanted.timestamp) return
  throw new TransferError(
    `${about}: records were stored at other positions or times: it ends at ${actual?.seqNum} ` +
      `with timestamp ${actual?.timestamp}, not at ${wanted.seqNum} with ${wanted.timestamp}`,
  )
}
