import type { Engine, EngineStream } from '../../src/index.ts'
import { closeRecord } from '../../src/model/command.ts'
import { HeadwaterError } from '../../src/model/errors.ts'
import { streamNameProblem } from '../../src/model/names.ts'
import type { Reply } from '../http/reply.ts'
import type { ApiRequest } from '../http/request.ts'
import { bodyOf } from './body.ts'
import { contentOf, DEFAULT_CONTENT_TYPE, isSameType } from './content.ts'
import { type CreateRequest, type ForkRequest, parseCreateRequest } from './create-request.ts'
import { DurableStreamsError } from './durable-streams-error.ts'
import { streamInPath } from './paths.ts'
import {
  type DescribedStream,
  describedStream,
  descriptionHeaders,
  METADATA,
  stateIfExists,
} from './state.ts'

/** How often a stream is looked for that others create and delete meanwhile. */
const ATTEMPTS_MAX = 5

/** Creates a stream, or confirms that it exists as it is asked for. */
export async function create(request: ApiRequest, hw: Engine, owner: Engine, root: string): Promise<Reply> {
  const { exchange } = request
  const wanted = parseCreateRequest(exchange)
  const stream = request.streamOf(hw)
  const body = await bodyOf(request)
  const source = wanted.fork && (await sourceOf(request, wanted, hw, root))
  for (let attempts = 0; attempts < ATTEMPTS_MAX; attempts++) {
    const existing = await stateIfExists(stream, ['create-stream'])
    if (existing !== undefined) return confirmed(existing, wanted, source)
    try {
      return await created(request, hw, stream, wanted, source, body)
    } catch (error) {
      if (!HeadwaterError.is(error)) throw error
      if (error.code === 'basin_not_found') await createBasin(owner, request)
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
  { basin, encryptionKey }: ApiRequest,
  { fork, contentType }: CreateRequest,
  hw: Engine,
  root: string,
): Promise<Source> {
  const name = streamNameOf(fork!.path, root)
  const stream = hw.basin(basin, { autoCreate: false }).stream(name, { encryptionKey })
  const state = await describedStream(stream, ['read'])
  if (contentType !== undefined && !isSameType(contentType, state.contentType)) {
    throw new DurableStreamsError(409, `the source of the fork has content type ${state.contentType}`)
  }
  return { name, stream, state }
}

function streamNameOf(path: string, root: string): string {
  const encoded = streamInPath(path, root)
  let name: string | undefined
  try {
    name = encoded === undefined ? undefined : decodeURIComponent(encoded)
  } catch {
    name = undefined
  }
  if (name !== undefined && streamNameProblem(name) === undefined) return name
  throw new DurableStreamsError(400, `\`stream-forked-from\` must be the path of a stream below ${root}/`)
}

/** Identifies the fork that a request asks for. */
function forkText({ fork }: CreateRequest, { name }: Source): string {
  const { seqNum, within } = fork!
  return `${seqNum ?? 'tail'}+${within} ${name}`
}

function confirmed(existing: DescribedStream, wanted: CreateRequest, source: Source | undefined): Reply {
  const { contentType, expiry } = wantedContent(wanted, source)
  const fork = source && forkText(wanted, source)
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

async function created(
  { exchange, basin, stream: name, encryptionKey }: ApiRequest,
  hw: Engine,
  stream: EngineStream,
  wanted: CreateRequest,
  source: Source | undefined,
  body: Uint8Array,
): Promise<Reply> {
  const { contentType, expiry } = wantedContent(wanted, source)
  const point = source && (await forkPoint(source.stream, source.state, wanted.fork!))
  const content = recordsOf(contentType, point, body)
  const records = wanted.isClosed ? [...content, closeRecord()] : content
  await hw.basin(basin, { autoCreate: false }).createStream(
    name,
    {},
    {
      metadata: {
        [METADATA.contentType]: contentType,
        ...(source && { [METADATA.fork]: forkText(wanted, source) }),
      },
      expiry,
      fork: source && { stream: source.name, seqNum: point?.seqNum },
      records: records.length === 0 ? undefined : records,
      encryptionKey,
    },
  )
  // A stream whose time is over when it is created has been there.
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
): readonly (Uint8Array | string)[] {
  const own = body.length === 0 ? [] : contentOf(contentType).recordsOf(body)
  return point?.part === undefined ? own : [point.part, ...own]
}

/** The operator has named the basin, so that no permission is needed. */
async function createBasin(owner: Engine, { basin, settings }: ApiRequest): Promise<void> {
  try {
    await owner.onConnection(settings.connection, settings.retention).createBasin(basin)
  } catch (error) {
    if (!HeadwaterError.is(error) || error.code !== 'resource_already_exists') throw error
  }
}

/** Where a fork ends its copy. */
interface ForkPoint {
  /** Exclusive. Undefined is the tail. */
  readonly seqNum: number | undefined
  /** The beginning of the next record. */
  readonly part: Uint8Array | undefined
}

/**
 * Finds the end of a fork: `within` bytes after an offset, or messages of a JSON stream. Throws 400 if the
 * source has fewer.
 */
async function forkPoint(
  stream: EngineStream,
  { content, tail }: DescribedStream,
  { seqNum, within }: ForkRequest,
): Promise<ForkPoint> {
  if (seqNum !== undefined && seqNum > tail.seqNum) throw new DurableStreamsError(400, BEYOND)
  if (seqNum === undefined || within === 0) return { seqNum, part: undefined }
  const countsMessages = content.empty !== ''
  let left = within
  for (let next = seqNum; next < tail.seqNum; ) {
    const batch = await stream.readUnary({ seqNum: next }, { allowsEmpty: 'always' })
    if (batch.count === 0) break
    for (const record of batch.withoutCommands().records) {
      const size = countsMessages ? 1 : record.body.length
      if (left < size) return { seqNum: record.seqNum, part: record.body.slice(0, left) }
      left -= size
      if (left === 0) return { seqNum: record.seqNum + 1, part: undefined }
    }
    next = batch.lastSeqNum + 1
  }
  const unit = countsMessages ? 'messages' : 'bytes'
  throw new DurableStreamsError(400, `${BEYOND}: \`stream-fork-sub-offset\` exceeds the ${unit} after it`)
}

const BEYOND = 'the offset of the fork is beyond the end of its source'
