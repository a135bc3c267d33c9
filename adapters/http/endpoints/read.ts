import type { ReadQuery } from '../../../src/index.ts'
import { HeadwaterError } from '../../../src/model/errors.ts'
import { readBatchJson, sharedBatchJson } from '../../../src/wire/json-records.ts'
import { readForm } from '../../../src/wire/media-type.ts'
import { encodeReadBatch } from '../../../src/wire/proto-records.ts'
import { decodeReadQuery } from '../../../src/wire/query.ts'
import { parseLastEventId, resumeQuery } from '../../../src/wire/sse.ts'
import { jsonReply, protobufReply } from '../reply.ts'
import type { ApiRequest, Endpoint } from '../request.ts'
import { frameStream, sessionEvents } from './read-session.ts'

/** Reads one batch, or opens a read session by Server-Sent Events or in frames. */
export const read: Endpoint = async (request, hw) => {
  // Errors in the names come before those in the query.
  const { basin: _basin, stream: _stream } = request
  const meaning = wellFormedQuery(request.query)
  const stream = request.streamOf(hw)
  const form = readForm(
    request.exchange.header('content-type'),
    request.exchange.header('accept'),
    request.settings.headerPrefixes,
  )
  if (form === 'session') return frameStream(request, stream, meaning())
  const format = request.dataFormat
  if (form === 'event-stream') return sessionEvents(request, stream, resumed(request, meaning), format)
  const query = meaning()
  // Only a read that waits outlasts its client by much.
  const signal = query.waitMs ? request.exchange.signal : undefined
  const batch = await stream.readUnary(query, { signal, ...request.readPolicy })
  if (form === 'protobuf') return protobufReply(encodeReadBatch(batch))
  // Readers that wait receive the same live batch.
  return jsonReply(query.waitMs ? sharedBatchJson(batch, format) : readBatchJson(batch, format))
}

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
