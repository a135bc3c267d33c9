import { readBatchJson } from '../../../src/wire/json-read.ts'
import { encodeReadBatch } from '../../../src/wire/proto-read.ts'
import { readRequest } from '../read-request.ts'
import { jsonReply, protobufReply } from '../reply.ts'
import type { Endpoint } from '../router.ts'
import { readSession } from './read-session.ts'
import { readEvents } from './read-sse.ts'

/** A read of one batch, or a session by Server-Sent Events or by frames (wire-behaviour.md 5). */
export const read: Endpoint = async (context) => {
  const request = readRequest(context)
  const { stream, query, form, format } = request
  if (form === 'session') return readSession(context, request)
  if (form === 'event-stream') return readEvents(context, request)
  const batch = await stream.readBatch(query, { signal: context.request.signal })
  return form === 'protobuf' ? protobufReply(encodeReadBatch(batch)) : jsonReply(readBatchJson(batch, format))
}
