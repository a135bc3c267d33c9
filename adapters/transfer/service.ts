import { create, toBinary } from '@bufbuild/protobuf'
import { basinConfig } from '../../src/core/basin-config.ts'
import { mergeStreamConfig } from '../../src/core/stream-config.ts'
import {
  type BasinConfig,
  type Cipher,
  HeadwaterError,
  type RestoredStream,
  type SequencedRecord,
  type StreamConfig,
  type StreamPosition,
} from '../../src/index.ts'
import { compareUtf8 } from '../../src/model/compare-utf8.ts'
import { INTEGER_MAX, READ_RECORDS_MAX } from '../../src/model/limits.ts'
import { AppendInputSchema } from '../../src/wire/gen/records_pb.ts'
import { basinConfigOf, cipherOf, streamConfigOf } from '../../src/wire/json-config-input.ts'
import { basinConfigJson, streamConfigJson } from '../../src/wire/json-config-output.ts'
import {
  arrayOf,
  booleanOf,
  keptStringOf,
  nullable,
  objectOf,
  required,
  stringOf,
} from '../../src/wire/json-members.ts'
import type { JsonObject } from '../../src/wire/json-values.ts'
import { type Answer, type Call, Connection, type ConnectionOptions, jsonBody } from './connection.ts'
import {
  ackEndOf,
  codeOf,
  jsonOf,
  mismatchOf,
  recordsOf,
  refusal,
  tailOf,
  timeTextOf,
} from './read-answer.ts'
import { TransferError } from './transfer-error.ts'

export interface ServiceOptions extends ConnectionOptions {
  /** Where the engine is in this process, what the wire protocol has no operation for. */
  readonly restoreStream?: (ref: StreamRef, restored: RestoredStream) => Promise<unknown>
}

export interface StreamRef {
  readonly basin: string
  readonly name: string
}

/** A stream as a list tells of it. */
export interface StreamFacts extends StreamRef {
  /** Of its records. */
  readonly cipher: Cipher | null
  /** RFC 3339; undefined when the service does not say. */
  readonly createdAt: string | undefined
}

/** What requests about records have to know of a stream. */
type SealedRef = StreamRef & Pick<StreamFacts, 'cipher'>

export interface ListRange {
  readonly prefix: string
  readonly startAfter?: string | undefined
  readonly limit?: number
}

/** A fencing token that no stream has, with a sequence number that none reaches: an append that asks for both changes nothing. */
const NO_FENCING_TOKEN = 'headwater export asks for the token'

/** What a transfer asks of a service, in its own words. Everything rejects with {@link TransferError}. */
export class Service {
  readonly restoreStream: ServiceOptions['restoreStream']
  readonly hasKey: boolean
  readonly #connection: Connection

  constructor(options: ServiceOptions) {
    const { restoreStream } = options
    this.restoreStream =
      restoreStream && ((ref, restored) => asTransferError(aboutStream(ref), restoreStream(ref, restored)))
    this.hasKey = options.encryptionKey !== undefined
    this.#connection = new Connection(options)
  }

  /** Names in the order of their UTF-8 bytes; basins that are being deleted are left out. */
  basins(range: ListRange): AsyncGenerator<string> {
    return this.#list('/basins', range, 'basins', undefined, (item) =>
      required(item, 'state', stringOf) === 'deleting' ? undefined : nameOf(item),
    )
  }

  async *streams(basin: string, range: ListRange): AsyncGenerator<StreamFacts> {
    const items = this.#list('/streams', range, 'streams', basin, (item) => ({
      basin,
      name: nameOf(item),
      cipher: nullable(item, 'cipher', cipherOf) ?? null,
      createdAt: nullable(item, 'created_at', timeTextOf),
      isGone: nullable(item, 'deleted_at', stringOf) !== undefined,
    }))
    for await (const { isGone, ...facts } of items) if (!isGone) yield facts
  }

  async findStream({ basin, name }: StreamRef): Promise<StreamFacts | undefined> {
    for await (const facts of this.streams(basin, { prefix: name, limit: 1 })) {
      return facts.name === name ? facts : undefined
    }
    return undefined
  }

  /** Undefined when there is no such basin. */
  async basinConfig(basin: string): Promise<BasinConfig | undefined> {
    const about = `basin ${basin}`
    const answer = await this.#ask(
      { method: 'GET', path: `/basins/${encodeURIComponent(basin)}` },
      about,
      404,
    )
    if (answer.status === 404) return undefined
    return jsonOf(answer.body, about, (object) => basinConfig(basinConfigOf(object, 'config')))
  }

  /** `uninterrupted`: to its end, also when the transfer was aborted. */
  async ensureBasin(
    basin: string,
    config: BasinConfig,
    { uninterrupted }: { readonly uninterrupted?: boolean } = {},
  ): Promise<void> {
    const body = jsonBody(`{"config":${basinConfigJson(config)}}`)
    const path = `/basins/${encodeURIComponent(basin)}`
    await this.#ask({ method: 'PUT', path, body, uninterrupted }, `basin ${basin}`)
  }

  /** Undefined when there is no such stream. */
  async streamConfig(ref: StreamRef): Promise<StreamConfig | undefined> {
    const about = aboutStream(ref)
    const answer = await this.#ask({ method: 'GET', path: streamPath(ref), basin: ref.basin }, about, 404)
    if (answer.status === 404) return undefined
    return jsonOf(answer.body, about, (object) => mergeStreamConfig(streamConfigOf(object, 'config'), {}))
  }

  async ensureStream(ref: StreamRef, config: StreamConfig): Promise<void> {
    const body = jsonBody(streamConfigJson(config))
    await this.#ask({ method: 'PUT', path: streamPath(ref), basin: ref.basin, body }, aboutStream(ref))
  }

  /** Undefined when there is no such stream. */
  async tail(ref: StreamRef): Promise<StreamPosition | undefined> {
    const path = `${streamPath(ref)}/records/tail`
    const answer = await this.#ask({ method: 'GET', path, basin: ref.basin }, aboutStream(ref), 404)
    return answer.status === 404 ? undefined : tailOf(answer.body, aboutStream(ref))
  }

  /** Records from a position on, at least one and no more than asked for; or the tail, where there are none. */
  async read(
    stream: SealedRef,
    seqNum: number,
    count = READ_RECORDS_MAX,
  ): Promise<{ readonly records: readonly SequencedRecord[] } | { readonly tail: StreamPosition }> {
    const about = aboutStream(stream)
    const { basin, cipher } = stream
    const path = `${streamPath(stream)}/records?seq_num=${seqNum}&count=${count}`
    const call: Call = {
      method: 'GET',
      path,
      basin,
      withKey: cipher !== null,
      accept: 'application/protobuf',
    }
    const answer = await this.#ask(call, about, 416)
    if (answer.status === 416) return { tail: tailOf(answer.body, about) }
    const records = recordsOf(answer.body, about)
    let next = seqNum
    let earliest = 0
    for (const record of records) {
      if (record.seqNum < next || record.timestamp < earliest)
        throw new TransferError(`${about}: the service gives records in no order`)
      next = record.seqNum + 1
      earliest = record.timestamp
    }
    if (records.length === 0)
      throw new TransferError(`${about}: the service gives no records where there are some`)
    return { records }
  }

  /** Appends at a position, once, however often the request has to be made. */
  async append(stream: SealedRef, records: readonly SequencedRecord[]): Promise<void> {
    const about = aboutStream(stream)
    const first = records[0]!
    const last = records.at(-1)!
    const end = { seqNum: last.seqNum + 1, timestamp: last.timestamp }
    const bytes = appendInput(records, { matchSeqNum: first.seqNum })
    const answer = await this.#ask(appendCall(stream, bytes), about, 412)
    if (answer.status !== 412) return checkEnd(ackEndOf(answer.body, about), end, about)
    const { seqNum } = mismatchOf(answer.body, about)
    // An attempt whose answer got lost was made after all.
    if (answer.attempts > 1 && seqNum === end.seqNum) return checkEnd(await this.tail(stream), end, about)
    throw appendedByOthers(stream, seqNum ?? 'fenced', first.seqNum)
  }

  /** The fencing token, `''` when there is none; undefined when the caller may not know it. Asks by an append that cannot succeed. */
  async fencingToken(stream: SealedRef): Promise<string | undefined> {
    const about = aboutStream(stream)
    const record = { seqNum: 0, timestamp: 0, headers: [], body: new Uint8Array(0) }
    const conditions = { matchSeqNum: INTEGER_MAX, fencingToken: NO_FENCING_TOKEN }
    const answer = await this.#connection.call(appendCall(stream, appendInput([record], conditions)))
    if (answer.status === 412) return mismatchOf(answer.body, about).fencingToken ?? NO_FENCING_TOKEN
    if (answer.status === 403 || answer.status === 404) return undefined
    throw refusal(answer, about)
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
      const { body } = await this.#ask(call, about)
      const { items, hasMore } = jsonOf(body, about, (page) => ({
        items: required(page, member, arrayOf).map((item) => objectOf(item, member)),
        hasMore: required(page, 'has_more', booleanOf),
      }))
      for (const item of items) {
        const name = jsonOfItem(about, () => nameOf(item))
        // Otherwise a page could be this one again, for ever.
        if (compareUtf8(name, after) <= 0) throw new TransferError(`${about} is in no order`)
        after = name
        const decoded = jsonOfItem(about, () => decode(item))
        if (decoded !== undefined) yield decoded
      }
      if (!hasMore || items.length === 0 || limit === 1) return
    }
  }

  /** An answer that tells success, or has the status that is expected beside. */
  async #ask(call: Call, about: string, expected?: number): Promise<Answer> {
    const answer = await this.#connection.call(call)
    if (answer.status >= 200 && answer.status < 300) return answer
    const isMissing = answer.status === 404 && codeOf(answer.body) === undefined
    if (answer.status === expected && !isMissing) return answer
    throw refusal(answer, about)
  }
}

/** A stream for messages. */
export function aboutStream({ basin, name }: StreamRef): string {
  return `stream ${name} of basin ${basin}`
}

export function appendedByOthers(ref: StreamRef, tail: number | 'fenced', expected: number): TransferError {
  const tails = `its tail is ${tail}, not ${expected}`
  return new TransferError(`${aboutStream(ref)}: somebody else appends to it: ${tails}`, { kind: 'conflict' })
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

function appendCall(stream: SealedRef, bytes: Uint8Array): Call {
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
    `${about}: records were stored at other positions or times than they had: it ends at ${actual?.seqNum} with timestamp ${actual?.timestamp}, not at ${wanted.seqNum} with ${wanted.timestamp}`,
  )
}
