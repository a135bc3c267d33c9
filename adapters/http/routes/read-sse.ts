import { utf8 } from '../../../src/model/bytes.ts'
import { pingJson } from '../../../src/wire/json-position.ts'
import { readBatchJson } from '../../../src/wire/json-read.ts'
import { batchEvent, DONE_EVENT, errorEvent, pingEvent } from '../../../src/wire/sse.ts'
import { emptyAtTail, type ReadRequest } from '../read-request.ts'
import { readStream, type SessionEncoding } from '../read-stream.ts'
import { type Reply, streamReply } from '../reply.ts'
import type { RequestContext } from '../request-context.ts'

/** A read session by Server-Sent Events (wire-behaviour.md 5.8). */
export async function readEvents(context: RequestContext, request: ReadRequest): Promise<Reply> {
  const options = { heartbeats: true, emptyAtTail: emptyAtTail(context) }
  const cursor = await request.stream.openRead(request.query, options)
  const encoding = eventEncoding(request.format)
  const body = readStream(cursor, encoding, context.request.signal, (error) => context.report(error))
  return streamReply('text/event-stream', body)
}

function eventEncoding(format: ReadRequest['format']): SessionEncoding {
  let count = 0
  let bytes = 0
  return {
    event(event) {
      if (event.kind === 'heartbeat') return utf8(pingEvent(pingJson(event.timestamp, event.tail)))
      const { batch } = event
      count += batch.count
      bytes += batch.meteredBytes
      return utf8(batchEvent({ lastSeqNum: batch.lastSeqNum, count, bytes }, readBatchJson(batch, format)))
    },
    failure: ({ text }) => utf8(errorEvent(text)),
    end: utf8(DONE_EVENT),
  }
}
