import type { EngineStream, ReadBatch, ReadEvent, ReadQuery } from '../../../src/index.ts'
import { utf8 } from '../../../src/model/bytes.ts'
import { HeadwaterError } from '../../../src/model/errors.ts'
import { andThen } from '../../../src/runtime/maybe-promise.ts'
import type { Compression } from '../../../src/wire/codecs.ts'
import {
  encodeTerminalFrame,
  heartbeatFrame,
  largeBatchFrame,
  readBatchFrame,
  sessionCompressionOf,
  withReconnectAdvice,
} from '../../../src/wire/frame.ts'
import { type DataFormat, sessionContentType } from '../../../src/wire/headers.ts'
import { pingJson, readBatchJson, tailJson } from '../../../src/wire/json-records.ts'
import { readForm } from '../../../src/wire/media-type.ts'
import { encodeReadBatch } from '../../../src/wire/protobuf.ts'
import { decodeReadQuery } from '../../../src/wire/query.ts'
import {
  batchEvent,
  DONE_EVENT,
  errorEvent,
  parseLastEventId,
  pingEvent,
  resumeQuery,
  startBlock,
} from '../../../src/wire/sse.ts'
import { jsonReply, protobufReply, type Reply, streamReply } from '../reply.ts'
import type { ApiRequest, Endpoint } from '../request.ts'
import { SessionBody, type SessionEncoding } from '../sessions.ts'

/** Reads one batch, or opens a read session by Server-Sent Events or in frames. */
export const read: Endpoint = async (request, hw) => {
  // Errors in the names come before those in the query.
  const { basin: _basin, stream: _stream } = request
  const meaning = wellFormedQuery(request.query)
  const stream = request.identifiedStreamOf(hw)
  const form = readForm(request.exchange.header('content-type'), request.exchange.header('accept'))
  if (form === 'session') return openFrameSession(request, stream, meaning())
  const format = request.dataFormat
  if (form === 'event-stream') return openEventSession(request, stream, resumed(request, meaning), format)
  const query = meaning()
  // Only a read that waits outlasts its client by much.
  const { exchange, settings, readPolicy } = request
  const batch = await (query.waitMs
    ? settings.drain.wait(exchange.signal, query.waitMs, (waitMs, signal) =>
        stream.readUnary({ ...query, waitMs }, { signal, ...readPolicy }),
      )
    : stream.readUnary(query, readPolicy))
  if (form === 'protobuf') return protobufReply(encodeReadBatch(batch))
  return jsonReply(readBatchJson(batch, format))
}

export const checkTail: Endpoint = async (request, hw) =>
  jsonReply(tailJson(await request.identifiedStreamOf(hw, { takesKey: false }).checkTail()))

/** A reconnecting `EventSource` continues after the last event it has received. */
function resumed(request: ApiRequest, meaning: () => ReadQuery): ReadQuery {
  const lastEventId = request.exchange.header('last-event-id')
  if (lastEventId === undefined) return meaning()
  const delivered = parseLastEventId(lastEventId)
  return resumeQuery(meaning(), delivered)
}

/**
 * Throws at once if the query is malformed. An invalid value has a lower precedence than malformed headers:
 * the returned function throws it.
 */
function wellFormedQuery(text: string): () => ReadQuery {
  try {
    const query = decodeReadQuery(text)
    return () => query
  } catch (error) {
    if (!HeadwaterError.is(error) || error.code !== 'invalid') throw error
    return () => {
      throw error
    }
  }
}

/** Opens a binary read session. It ends with the body; a terminal frame reports a failure. */
function openFrameSession(request: ApiRequest, stream: EngineStream, query: ReadQuery): Promise<Reply> {
  const { exchange } = request
  // Browsers decode content codings for their pages, but no frames.
  const isOfPage = exchange.header('sec-fetch-site') !== undefined
  const compression = sessionCompressionOf(exchange.header('accept-encoding'), isOfPage)
  const contentType = sessionContentType(request.headerPrefix)
  return openSession(request, stream, query, contentType, frameEncoding(compression))
}

/** Opens a read session by Server-Sent Events. */
function openEventSession(
  request: ApiRequest,
  stream: EngineStream,
  query: ReadQuery,
  format: DataFormat,
): Promise<Reply> {
  const isResumed = request.exchange.header('last-event-id') !== undefined
  return openSession(request, stream, query, EVENT_STREAM, eventEncoding(format, isResumed))
}

async function openSession(
  request: ApiRequest,
  stream: EngineStream,
  query: ReadQuery,
  contentType: string,
  encoding: SessionEncoding,
): Promise<Reply> {
  request.settings.drain.assertOpen()
  const cursor = await stream.openCursor(query, { heartbeats: true, ...request.readPolicy })
  const protocol = contentType === EVENT_STREAM ? 'events' : 'frames'
  return streamReply(contentType, new SessionBody(cursor, encoding, request, protocol))
}

const EVENT_STREAM = 'text/event-stream'

function frameEncoding(compression: Compression | undefined): SessionEncoding {
  let advisesReconnect = false
  const frameOf = (event: ReadEvent) => {
    if (event.kind === 'heartbeat') return heartbeatFrame(event.tail)
    const parts = compression === undefined ? largeBatchFrame(event.batch) : undefined
    return parts ?? readBatchFrame(event.batch, compression)
  }
  return {
    reusesMemory: true,
    event: (event) => (advisesReconnect ? andThen(frameOf(event), withReconnectAdvice) : frameOf(event)),
    advise() {
      advisesReconnect = true
    },
    failure: ({ status, text }) => encodeTerminalFrame(status, text),
  }
}

const DONE_CHUNK = utf8(DONE_EVENT)

function eventEncoding(format: DataFormat, isResumed: boolean): SessionEncoding {
  let count = 0
  let bytes = 0
  // A client that resumes has an id, which also states what it was sent.
  let hasId = isResumed
  return {
    event(event) {
      const isFirst = !hasId
      hasId = true
      if (event.kind === 'heartbeat') {
        const { timestamp, tail } = event
        const ping = pingEvent(pingJson(timestamp, tail))
        // Nothing was delivered, so the read has begun at the tail.
        return utf8(isFirst ? startBlock(tail.seqNum) + ping : ping)
      }
      const { batch } = event
      count += batch.count
      bytes += batch.meteredBytes
      return sharedBatchEvent(batch, format, count, bytes)
    },
    failure: ({ text }) => utf8(errorEvent(text)),
    end: DONE_CHUNK,
  }
}

interface SharedEvent {
  readonly format: DataFormat
  readonly count: number
  readonly bytes: number
  readonly chunk: Uint8Array
}

/** The last event made of each batch. */
const lastEvents = new WeakMap<ReadBatch, SharedEvent>()

/** The event of a batch, shared by connections that have delivered the same amount in the same format. */
function sharedBatchEvent(
  batch: ReadBatch<'bytes'>,
  format: DataFormat,
  count: number,
  bytes: number,
): Uint8Array {
  const known = lastEvents.get(batch)
  if (known?.count === count && known.bytes === bytes && known.format === format) return known.chunk
  const delivered = { lastSeqNum: batch.lastSeqNum, count, bytes }
  const chunk = utf8(batchEvent(delivered, readBatchJson(batch, format)))
  lastEvents.set(batch, { format, count, bytes, chunk })
  return chunk
}
