import {
  AppendInput,
  AppendRecord,
  FencingTokenMismatchError,
  RangeNotSatisfiableError,
  type ReadInput,
  type ReadRecord,
  S2,
  S2Basin,
  S2Error,
  type S2Stream,
  SeqNumMismatchError,
  type StreamPosition,
} from '@s2-dev/streamstore'
import type { ClientCore } from '../../../adapters/client/core.ts'
import { emptyAt } from '../../../adapters/client/errors.ts'
import { RemoteBasin, RemoteHeadwater, RemoteStream } from '../../../adapters/client/remote.ts'
import { RemoteTarget } from '../../../adapters/client/stream-target.ts'
import { type AppendOptions, AppendSession } from '../../../src/api/append-session.ts'
import type { CallOptions, StreamOptions } from '../../../src/api/call-options.ts'
import type { CursorOptions, RecordCursor } from '../../../src/api/record-cursor.ts'
import { HeadwaterError, type ReadQuery, type RecordInput } from '../../../src/index.ts'
import { type AppendBatch, appendBatch } from '../../../src/model/append-input.ts'
import { ERROR_KINDS, type ErrorCode } from '../../../src/model/errors.ts'
import { assertReadQuery } from '../../../src/model/read-query.ts'
import { commandOf, meteredBytesOf, type SequencedRecord } from '../../../src/model/record.ts'
import { millisecondsOf } from '../../../src/model/validation.ts'
import { unlessAborted } from '../../../src/runtime/abort.ts'
import { ReadBatch, RecordBatch } from '../../../src/storage/record-batch.ts'

/**
 * A client whose streams append and read with the published client of the protocol. Calls that manage basins,
 * streams and tokens are those of `headwater/client`.
 */
export class PublishedHeadwater extends RemoteHeadwater {
  readonly #core: ClientCore
  readonly #url: string

  constructor(core: ClientCore, url: string) {
    super(core)
    this.#core = core
    this.#url = url
  }

  override basin(name: string): RemoteBasin {
    return new PublishedBasin(this.#core, name, publishedBasin(this.#url, name))
  }
}

function publishedBasin(url: string, name: string): S2Basin {
  const s2 = new S2({ accessToken: 'any', retry: { maxAttempts: 1 } })
  // `s2.basin()` refuses the short names of the tests.
  return new S2Basin(name, {
    accessToken: Reflect.get(s2, 'accessToken'),
    baseUrl: `${url}/v1`,
    includeBasinHeader: true,
    retryConfig: { maxAttempts: 1, requestTimeoutMillis: 100_000 },
  })
}

class PublishedBasin extends RemoteBasin {
  readonly #core: ClientCore
  readonly #published: S2Basin

  constructor(core: ClientCore, name: string, published: S2Basin) {
    super(core, name, false)
    this.#core = core
    this.#published = published
  }

  override stream(name: string, options: StreamOptions = {}): RemoteStream {
    const target = new RemoteTarget([this.name, name], options, false)
    return new PublishedStream(this.#core, target, this.#published.stream(name))
  }
}

class PublishedStream extends RemoteStream {
  readonly #core: ClientCore
  readonly #target: RemoteTarget
  readonly #published: S2Stream

  constructor(core: ClientCore, target: RemoteTarget, published: S2Stream) {
    super(core, target)
    this.#core = core
    this.#target = target
    this.#published = published
    core.onClose(() => void published.close())
  }

  override async append(records: RecordInput | readonly RecordInput[], options: AppendOptions = {}) {
    const input = inputOf(appendBatch(records, options))
    const acked = this.#core.inOrder(this.#target.names, () => this.#call((stream) => stream.append(input)))
    return ackOf(await unlessAborted(options.signal, acked))
  }

  override async appendSession({ signal }: CallOptions = {}): Promise<AppendSession> {
    await this.checkTail({ signal })
    const session = await this.#call((stream) => stream.appendSession())
    const { streamContext, closing, settings } = this.#core
    const append = async (batch: AppendBatch, _: unknown, started: () => void) => {
      const ticket = await this.#call(() => session.submit(inputOf(batch)))
      started()
      return ackOf(await this.#call(() => ticket.ack()))
    }
    return new AppendSession({
      appender: { group: new Group(), append, release: () => void session.close().catch(() => {}) },
      reserve: streamContext.reserve,
      inFlightBytes: settings.limits.sessionInFlightBytes,
      clock: settings.clock,
      closing,
      signal,
      revoked: undefined,
      check: () => {},
      onEnd: () => {},
    })
  }

  override async checkTail({ signal }: CallOptions = {}) {
    const { tail } = await this.#call((stream) => stream.checkTail(signal && { signal }))
    return positionOf(tail)
  }

  override async readUnary(query: ReadQuery, { signal }: CursorOptions & CallOptions): Promise<ReadBatch> {
    try {
      const read = await this.#call((stream) =>
        stream.read(inputOfRead(query), { as: 'bytes', ...(signal && { signal }) }),
      )
      return batchOf(read.records, read.tail)
    } catch (error) {
      signal?.throwIfAborted()
      const tail = emptyAt(query, error)
      if (tail === undefined) throw error
      return batchOf([], { ...tail, timestamp: new Date(tail.timestamp) })
    }
  }

  /** The published client does not tell where batches end: each record is one. */
  override async openCursor(query: ReadQuery): Promise<RecordCursor | undefined> {
    const session = await this.#call((stream) => stream.readSession(inputOfRead(query), { as: 'bytes' }))
    const reader = session.getReader()
    const next = () => this.#call(() => reader.read())
    let first: ReturnType<typeof next> | undefined = next()
    try {
      // Records that are appended from now on are read.
      await Promise.race([first, session.caughtUp().catch(() => first)])
    } catch (error) {
      if (emptyAt(query, error) === undefined) throw error
      return undefined
    }
    return {
      next: async () => {
        const { done, value } = await (first ?? next())
        first = undefined
        return done ? undefined : { kind: 'batch', batch: batchOf([value]) }
      },
      close: () => void reader.cancel().catch(() => {}),
    }
  }

  /** Rejects with the error of the library. */
  async #call<Result>(call: (stream: S2Stream) => Promise<Result>): Promise<Result> {
    const { closing } = this.#core
    closing.throwIfAborted()
    try {
      return await call(this.#published)
    } catch (error) {
      closing.throwIfAborted()
      throw error instanceof S2Error ? errorOf(error) : error
    }
  }
}

class Group {
  failed = false

  fail(): void {
    this.failed = true
  }
}

/** Texts and bytes take different ways through the published client. */
const isText = (bytes: Uint8Array) =>
  !bytes.includes(0) && Buffer.from(Buffer.from(bytes).toString()).equals(bytes)
const textOf = (bytes: Uint8Array) => Buffer.from(bytes).toString()

function inputOf({ records, matchSeqNum, fencingToken, producer, streamSeq }: AppendBatch): AppendInput {
  if (producer !== undefined || streamSeq !== undefined)
    throw new HeadwaterError('unsupported', 'the published client has no numbered appends')
  const inputs = records.map(({ headers, body, timestamp }) => {
    const time = timestamp === undefined ? {} : { timestamp }
    if (![...headers.flat(), body].every(isText)) {
      const copied = headers.map(([name, value]) => [name.slice(), value.slice()] as const)
      return AppendRecord.bytes({ headers: copied, body: body.slice(), ...time })
    }
    const texts = headers.map(([name, value]) => [textOf(name), textOf(value)] as const)
    return AppendRecord.string({ headers: texts, body: textOf(body), ...time })
  })
  return AppendInput.create(inputs, {
    ...(matchSeqNum !== undefined && { matchSeqNum }),
    ...(fencingToken !== undefined && { fencingToken }),
  })
}

function inputOfRead(query: ReadQuery): ReadInput {
  assertReadQuery(query)
  const { seqNum, timestamp, tailOffset, clamp, count, bytes, until, waitMs } = query
  const startsAt = { seqNum, timestamp: timestamp && millisecondsOf(timestamp), tailOffset }
  const given = Object.entries(startsAt).filter(([, value]) => value !== undefined)
  return {
    start: {
      clamp: clamp ?? timestamp !== undefined,
      ...(given.length > 0 && { from: Object.fromEntries(given) as { seqNum: number } }),
    },
    stop: {
      limits: { ...(count !== undefined && { count }), ...(bytes !== undefined && { bytes }) },
      ...(until !== undefined && { untilTimestamp: millisecondsOf(until) }),
      ...(waitMs !== undefined && Number.isFinite(waitMs) && { waitSecs: Math.ceil(waitMs / 1_000) }),
    },
  }
}

const positionOf = ({ seqNum, timestamp }: StreamPosition) => ({ seqNum, timestamp: timestamp.getTime() })

const ackOf = ({ start, end, tail }: Record<'start' | 'end' | 'tail', StreamPosition>) => ({
  start: positionOf(start),
  end: positionOf(end),
  tail: positionOf(tail),
})

function batchOf(read: readonly ReadRecord<'bytes'>[], tail?: StreamPosition): ReadBatch {
  const records = read.map(({ headers, body, ...position }): SequencedRecord => {
    const command = commandOf(headers, body)
    return { ...positionOf(position), headers, body, ...(command && { command }) }
  })
  const meteredBytes = records.reduce((sum, { headers, body }) => sum + meteredBytesOf(headers, body), 0)
  const summary = { count: records.length, meteredBytes, lastSeqNum: records.at(-1)?.seqNum ?? -1 }
  return new ReadBatch(new RecordBatch(records), summary, tail && positionOf(tail))
}

function errorOf(error: S2Error): HeadwaterError {
  const { message, code = '' } = error
  if (error instanceof SeqNumMismatchError)
    return new HeadwaterError('seq_num_mismatch', message, { seqNum: error.expectedSeqNum })
  if (error instanceof FencingTokenMismatchError)
    return new HeadwaterError('fencing_token_mismatch', message, { fencingToken: error.expectedFencingToken })
  if (error instanceof RangeNotSatisfiableError)
    return new HeadwaterError('range_not_satisfiable', message, {
      ...(error.tail && { tail: positionOf(error.tail) }),
    })
  return new HeadwaterError(code in ERROR_KINDS ? (code as ErrorCode) : 'unavailable', message, {
    cause: error,
  })
}
