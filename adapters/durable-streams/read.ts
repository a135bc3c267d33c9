import type { Engine, SequencedRecord } from '../../src/index.ts'
import { utf8 } from '../../src/model/bytes.ts'
import type { Reply } from '../http/reply.ts'
import type { ApiRequest } from '../http/request.ts'
import { contentHeaders } from './content.ts'
import { eventStream } from './events.ts'
import { cursorsOf, DurableStreamsError, offsetOf, parseStart, type StartOffset } from './headers.ts'
import { completionOf, HeldBody, HeldBytes } from './large-messages.ts'
import type { DurableStreamsSettings } from './options.ts'
import {
  type DescribedStream,
  describedStream,
  goneError,
  type ReadPosition,
  readPositionOf,
} from './state.ts'

/** Handles `GET`: a catch-up read, a long poll or an event stream. */
export async function read(
  request: ApiRequest,
  hw: Engine,
  settings: DurableStreamsSettings,
): Promise<Reply> {
  const query = new URLSearchParams(request.query)
  const live = query.get('live')
  const start = startOf(query, live !== null)
  if (live !== null && live !== 'long-poll' && live !== 'sse') {
    throw new DurableStreamsError(400, '`live` must be long-poll or sse')
  }
  const stream = request.streamOf(hw)
  const state = await describedStream(stream, ['read'], { isRead: true })
  const position = readPositionOf(start, stream, state)
  if (live === null && start === 'now') return atTail(state)
  const cursors = cursorsOf(query.get('cursor'), hw.now(), Math.random)
  if (live === 'sse') {
    return eventStream(request, position, { cursors: () => cursors(hw.now()), sseMs: settings.sseMs })
  }
  return live === null
    ? catchUp(request, position, settings)
    : longPoll(request, hw, position, cursors, settings)
}

function startOf(query: URLSearchParams, isRequired: boolean): StartOffset {
  const offsets = query.getAll('offset')
  if (offsets.length > 1) throw new DurableStreamsError(400, '`offset` must not be repeated')
  const [offset] = offsets
  if (offset !== undefined) return parseStart(offset)
  if (isRequired) throw new DurableStreamsError(400, '`live` requires `offset`')
  return 'beginning'
}

function atTail({ content, contentType, tail }: DescribedStream): Reply {
  const headers = {
    ...contentHeaders(contentType),
    'cache-control': 'no-store',
    'stream-next-offset': offsetOf(tail.seqNum),
    'stream-up-to-date': 'true',
    ...(tail.closed && CLOSED),
  }
  return { status: 200, headers, body: content.empty }
}

/** One response with records. */
interface Chunk {
  /** The records that were read, without commands, with the last message complete. */
  readonly records: readonly SequencedRecord[]
  /** The memory of what exceeds a read. */
  readonly held: HeldBytes
  /** The sequence number after the response. */
  readonly next: number
  readonly isUpToDate: boolean
  /** Set if it ends with the last record of a closed stream. */
  readonly isLast: boolean
}

const CLOSED = { 'stream-closed': 'true' }

/** Rejects with 410 if records at the position were removed. */
async function readChunk(
  request: ApiRequest,
  { stream, state, isExact }: ReadPosition,
  seqNum: number,
  wait?: { readonly waitMs: number; readonly signal: AbortSignal },
): Promise<Chunk> {
  const query = { seqNum, waitMs: wait?.waitMs }
  const batch = await stream.readUnary(query, { allowsEmpty: 'always', signal: wait?.signal })
  const { tail = state.tail } = batch
  const held = new HeldBytes(request.settings)
  if (batch.count === 0) {
    if (isExact && seqNum < tail.seqNum) throw goneError(tail.seqNum)
    const isLast = tail.closed === true
    return { records: [], held, next: Math.max(seqNum, tail.seqNum), isUpToDate: true, isLast }
  }
  const first = batch.lastSeqNum + 1 - batch.count
  if (isExact && first > seqNum) throw goneError(first)
  const { parts, tail: latest = tail } = await completionOf(batch, stream, held)
  const records = [...batch.withoutCommands().records, ...parts]
  const next = batch.lastSeqNum + 1 + parts.length
  const isUpToDate = next >= latest.seqNum
  return { records, held, next, isUpToDate, isLast: isUpToDate && latest.closed === true }
}

/** The body of a response, which releases its memory once it is sent. */
function bodyOf({ state: { content } }: ReadPosition, { records, held }: Chunk): NonNullable<Reply['body']> {
  if (held.isEmpty) return content.bodyOf(records)
  try {
    const body = content.bodyOf(records)
    return new HeldBody(typeof body === 'string' ? utf8(body) : body, held)
  } catch (error) {
    held.release()
    throw error
  }
}

async function catchUp(
  request: ApiRequest,
  position: ReadPosition,
  settings: DurableStreamsSettings,
): Promise<Reply> {
  const { state, seqNum } = position
  const chunk = await readChunk(request, position, seqNum)
  const { next, isUpToDate, isLast } = chunk
  const etag = etagOf(state, seqNum, next, isUpToDate)
  const headers = {
    etag,
    // A response that reaches the tail is soon stale, and a client must read its own appends.
    'cache-control': isUpToDate ? 'no-cache' : settings.cacheControl,
    'stream-next-offset': offsetOf(next),
    ...(isUpToDate && { 'stream-up-to-date': 'true' }),
    ...(isLast && CLOSED),
  }
  if (isKnown(request, etag)) {
    chunk.held.release()
    return { status: 304, headers }
  }
  return {
    status: 200,
    headers: { ...headers, ...contentHeaders(state.contentType) },
    body: bodyOf(position, chunk),
  }
}

/**
 * The tag states whether the response reached the tail: a client with the same range may have fallen behind
 * since.
 */
function etagOf({ id }: DescribedStream, start: number, next: number, isUpToDate: boolean): string {
  return `W/"${id}:${start}:${next}${isUpToDate ? ':t' : ''}"`
}

function isKnown({ exchange }: ApiRequest, etag: string): boolean {
  const known = exchange.header('if-none-match')?.split(',')
  return known?.some((one) => one.trim() === etag || one.trim() === etag.slice(2)) ?? false
}

async function longPoll(
  request: ApiRequest,
  hw: Engine,
  position: ReadPosition,
  cursors: (now: number) => string,
  { longPollMs, cacheControl }: DurableStreamsSettings,
): Promise<Reply> {
  const { state } = position
  const { exchange, settings } = request
  const end = hw.now() + longPollMs
  for (let { seqNum } = position; ; ) {
    const waitMs = Math.max(0, end - hw.now())
    const chunk = await settings.drain.wait(exchange.signal, waitMs, (ms, signal) =>
      readChunk(request, position, seqNum, { waitMs: ms, signal }),
    )
    const { next, isUpToDate, isLast } = chunk
    const headers = {
      'stream-next-offset': offsetOf(next),
      'stream-cursor': cursors(hw.now()),
      ...(isUpToDate && { 'stream-up-to-date': 'true' }),
      ...(isLast && CLOSED),
    }
    if (chunk.records.length > 0) {
      return {
        status: 200,
        headers: {
          ...headers,
          etag: etagOf(state, position.seqNum, next, isUpToDate),
          'cache-control': cacheControl,
          ...contentHeaders(state.contentType),
        },
        body: bodyOf(position, chunk),
      }
    }
    // A long poll does not end for commands, which are not visible to the client.
    if (next === seqNum || waitMs === 0 || isLast) {
      return { status: 204, headers: { ...headers, 'cache-control': 'no-store' } }
    }
    seqNum = next
  }
}
