import type { Engine, EngineStream, RecordInput, StreamDescription } from '../../src/index.ts'
import { HeadwaterError } from '../../src/model/errors.ts'
import { streamNameProblem } from '../../src/model/names.ts'
import { closeRecord } from '../../src/model/record.ts'
import { timeOf } from '../../src/wire/json.ts'
import type { RequestExchange } from '../http/exchange.ts'
import type { Reply } from '../http/reply.ts'
import { type ApiRequest, decodedSegment } from '../http/request.ts'
import type { Router } from '../http/router.ts'
import { bodyOf } from './append.ts'
import { assertContentType, contentOf, DEFAULT_CONTENT_TYPE, isSameType } from './content.ts'
import { DurableStreamsError, headerIntegerOf, isClosing, parseOffset } from './headers.ts'
import { completionOf, HeldBytes } from './large-messages.ts'
import { messageRecords, recordsOfMessage } from './messages.ts'
import {
  type DescribedStream,
  describedStream,
  descriptionHeaders,
  METADATA,
  stateIfExists,
} from './state.ts'

/** How often a creation is tried while other requests create and delete the stream. */
const ATTEMPTS_MAX = 5

/** Creates a stream, or confirms that it exists with the requested properties. `router` finds the streams. */
export async function create(request: ApiRequest, hw: Engine, router: Router<unknown>): Promise<Reply> {
  const { exchange } = request
  const wanted = parseCreateRequest(exchange)
  const stream = request.streamOf(hw)
  const body = await bodyOf(request)
  const source = wanted.fork && (await sourceOf(request, wanted, hw, router))
  for (let attempts = 0; attempts < ATTEMPTS_MAX; attempts++) {
    const existing = await stateIfExists(stream, ['create-stream'])
    if (existing !== undefined) return confirmExisting(existing, wanted, source)
    try {
      return await createStream(request, hw, stream, wanted, source, body)
    } catch (error) {
      if (!HeadwaterError.is(error)) throw error
      if (error.code === 'basin_not_found') await createBasin(request)
      else if (error.code !== 'resource_already_exists') throw error
    }
  }
  throw new HeadwaterError('transaction_conflict', 'the stream was created and deleted meanwhile')
}

/** The stream that a fork copies. */
interface Source {
  readonly name: string
  readonly stream: EngineStream
  readonly state: DescribedStream
}

async function sourceOf(
  { basin, encryptionKey, settings }: ApiRequest,
  { fork, contentType }: CreateRequest,
  hw: Engine,
  router: Router<unknown>,
): Promise<Source> {
  const name = streamNameOf(router.match(fork!.path, settings.prefix)?.parameters.stream)
  const stream = hw.basin(basin, { autoCreate: false }).stream(name, { encryptionKey })
  const state = await describedStream(stream, ['read'])
  if (contentType !== undefined && !isSameType(contentType, state.contentType)) {
    throw new DurableStreamsError(409, `the source of the fork has content type ${state.contentType}`)
  }
  return { name, stream, state }
}

/** Throws 400 unless the part of a path is the encoded name of a stream. */
function streamNameOf(encoded: string | undefined): string {
  const name = encoded === undefined ? undefined : decodedSegment(encoded)
  if (name !== undefined && streamNameProblem(name) === undefined) return name
  throw new DurableStreamsError(400, `\`stream-forked-from\` must be the path of a stream of this server`)
}

/** Identifies the fork that a request asks for. */
function forkIdentity({ fork }: CreateRequest, { name }: Source): string {
  const { seqNum, within } = fork!
  return `${seqNum ?? 'tail'}+${within} ${name}`
}

function confirmExisting(
  existing: DescribedStream,
  wanted: CreateRequest,
  source: Source | undefined,
): Reply {
  const { contentType, expiry } = wantedContent(wanted, source)
  const fork = source && forkIdentity(wanted, source)
  const isSame =
    isSameType(contentType, existing.contentType) &&
    JSON.stringify(expiry) === JSON.stringify(existing.expiry) &&
    fork === existing.metadata[METADATA.fork] &&
    wanted.isClosed === (existing.tail.closed === true)
  if (isSame) return { status: 200, headers: descriptionHeaders(existing) }
  throw new DurableStreamsError(409, 'the stream exists with another configuration')
}

function wantedContent(
  { contentType, expiry }: CreateRequest,
  source: Source | undefined,
): { readonly contentType: string; readonly expiry: CreateRequest['expiry'] } {
  return {
    contentType: contentType ?? source?.state.contentType ?? DEFAULT_CONTENT_TYPE,
    expiry: expiry ?? source?.state.expiry,
  }
}

async function createStream(
  request: ApiRequest,
  hw: Engine,
  stream: EngineStream,
  wanted: CreateRequest,
  source: Source | undefined,
  body: Uint8Array,
): Promise<Reply> {
  const { exchange, basin, stream: name, encryptionKey } = request
  const { contentType, expiry } = wantedContent(wanted, source)
  const point = source && (await forkPoint(request, source.stream, source.state, wanted.fork!))
  const content = recordsOf(contentType, point, body)
  const records = wanted.isClosed ? [...content, closeRecord()] : content
  await hw.basin(basin, { autoCreate: false }).createLargeStream(
    name,
    {},
    {
      metadata: {
        [METADATA.contentType]: contentType,
        ...(source && { [METADATA.fork]: forkIdentity(wanted, source) }),
      },
      expiry,
      fork: source && { stream: source.name, seqNum: point?.seqNum },
      records: records.length === 0 ? undefined : records,
      encryptionKey,
    },
  )
  // A stream that expires at once was created nevertheless.
  const state = (await stateIfExists(stream, ['create-stream'])) ?? {
    contentType,
    expiry,
    tail: {
      seqNum: (source === undefined ? 0 : (point?.seqNum ?? source.state.tail.seqNum)) + records.length,
      closed: wanted.isClosed || undefined,
    },
  }
  const scheme = exchange.isSecure || exchange.header('x-forwarded-proto') === 'https' ? 'https' : 'http'
  const location = `${scheme}://${exchange.host}${exchange.path}`
  return { status: 201, headers: { ...descriptionHeaders(state), location } }
}

function recordsOf(
  contentType: string,
  point: ForkPoint | undefined,
  body: Uint8Array,
): readonly RecordInput[] {
  const messages = body.length === 0 ? [] : contentOf(contentType).messagesOf(body)
  const own = messages.flatMap(recordsOfMessage)
  return point?.part === undefined ? own : [point.part, ...own]
}

/** Creates the basin without a permission of the caller: the operator has configured its name. */
async function createBasin({ owner, basin, settings }: ApiRequest): Promise<void> {
  try {
    await owner.onConnection(settings.connection, settings.retention).createBasin(basin)
  } catch (error) {
    if (!HeadwaterError.is(error) || error.code !== 'resource_already_exists') throw error
  }
}

/** The end of the copy of a fork. */
interface ForkPoint {
  /** The sequence number after the last copied record; undefined for the tail. */
  readonly seqNum: number | undefined
  /** The beginning of the record at `seqNum`, if the fork ends within it. */
  readonly part: Uint8Array | undefined
}

/**
 * Finds the end of a fork: `within` bytes after an offset, or messages of a JSON stream. Throws 400 if the
 * source has fewer.
 */
async function forkPoint(
  { settings }: ApiRequest,
  stream: EngineStream,
  { content, tail }: DescribedStream,
  { seqNum, within }: ForkRequest,
): Promise<ForkPoint> {
  if (seqNum !== undefined && seqNum > tail.seqNum) throw new DurableStreamsError(400, BEYOND)
  if (seqNum === undefined || within === 0) return { seqNum, part: undefined }
  const countsMessages = content.empty !== ''
  let left = within
  const held = new HeldBytes(settings)
  for (let next = seqNum; next < tail.seqNum; ) {
    const batch = await stream.readUnary({ seqNum: next }, { allowsEmpty: 'always' })
    if (batch.count === 0) break
    const { parts } = countsMessages ? await completionOf(batch, stream, held) : { parts: [] }
    // They are dropped in this turn.
    held.release()
    next = batch.lastSeqNum + 1 + parts.length
    const records = [...batch.withoutCommands().records, ...parts]
    for (const message of countsMessages ? messageRecords(records) : records.map((record) => [record])) {
      const last = message.at(-1)!
      const size = countsMessages ? 1 : last.body.length
      if (left < size) return { seqNum: last.seqNum, part: last.body.slice(0, left) }
      left -= size
      if (left === 0) return { seqNum: last.seqNum + 1, part: undefined }
    }
  }
  const unit = countsMessages ? 'messages' : 'bytes'
  throw new DurableStreamsError(400, `${BEYOND}: \`stream-fork-sub-offset\` exceeds the ${unit} after it`)
}

const BEYOND = 'the offset of the fork is beyond the end of its source'

/** The headers of a `PUT`. */
interface CreateRequest {
  readonly contentType: string | undefined
  readonly expiry: StreamDescription['expiry']
  /** Whether the stream is closed after its first records. */
  readonly isClosed: boolean
  readonly fork: ForkRequest | undefined
}

/** A stream that begins as a copy of another one. */
interface ForkRequest {
  /** The path of the source. */
  readonly path: string
  /** The sequence number after the last whole record; undefined is the tail. */
  readonly seqNum: number | undefined
  /** How many bytes or messages follow it. */
  readonly within: number
}

/** Parses the headers of a `PUT`. Throws 400. */
function parseCreateRequest(exchange: RequestExchange): CreateRequest {
  const contentType = exchange.header('content-type')
  if (contentType !== undefined) assertContentType(contentType)
  return {
    contentType,
    expiry: expiryOf(exchange),
    isClosed: isClosing(exchange),
    fork: forkOf(exchange),
  }
}

function expiryOf(exchange: RequestExchange): CreateRequest['expiry'] {
  const ttl = exchange.header('stream-ttl')
  const at = exchange.header('stream-expires-at')
  if (ttl !== undefined && at !== undefined) {
    throw new DurableStreamsError(400, '`stream-ttl` and `stream-expires-at` exclude each other')
  }
  if (ttl !== undefined) return { idleSeconds: headerIntegerOf(ttl, 'stream-ttl') }
  return at === undefined ? undefined : { at: timeOf(at, 'stream-expires-at').getTime() }
}

function forkOf(exchange: RequestExchange): ForkRequest | undefined {
  const path = exchange.header('stream-forked-from')
  const offset = exchange.header('stream-fork-offset')
  const sub = exchange.header('stream-fork-sub-offset')
  const within = sub === undefined ? 0 : headerIntegerOf(sub, 'stream-fork-sub-offset')
  if (path === undefined) {
    if (offset === undefined && sub === undefined) return undefined
    throw new DurableStreamsError(400, 'an offset of a fork requires `stream-forked-from`')
  }
  if (offset === undefined && within > 0) {
    throw new DurableStreamsError(400, '`stream-fork-sub-offset` requires `stream-fork-offset`')
  }
  const seqNum = offset === undefined ? undefined : parseOffset(offset, 'stream-fork-offset')
  return { path, seqNum, within }
}
