import { decodeAppendHeader } from '../../../src/wire/append-header.ts'
import { APPEND_HEADER, type AppendHeaderReply } from '../../../src/wire/append-header-name.ts'
import { appendAckJson, decodeAppendJson } from '../../../src/wire/json-append.ts'
import { mediaKind, requireJson } from '../../../src/wire/media-type.ts'
import { decodeAppendInput, encodeAppendAck } from '../../../src/wire/proto-records.ts'
import { wholeBody } from '../body.ts'
import { jsonReply, protobufReply } from '../reply.ts'
import type { Endpoint } from '../request.ts'
import { appendSession } from './append-session.ts'

/** Appends one batch, or opens an append session. Errors in the body come before those of the stream. */
export const append: Endpoint = async (request, hw) => {
  const stream = request.streamOf(hw)
  const { exchange, settings } = request
  const contentType = exchange.header('content-type')
  const kind = mediaKind(contentType, settings.headerPrefixes)
  if (kind === 'session') return appendSession(request, stream)
  const isProtobuf = kind === 'protobuf'
  const format = isProtobuf ? undefined : request.dataFormat
  if (!isProtobuf && kind !== 'json') requireJson(contentType)
  const reading = wholeBody(request, isProtobuf ? 'bad_proto' : 'bad_json')
  const body = reading instanceof Promise ? await reading : reading
  const { inputs, conditions } =
    format === undefined ? decodeAppendInput(body, 'bad_proto') : decodeAppendJson(body, format)
  const extension = exchange.header(APPEND_HEADER)
  const extended = extension === undefined ? conditions : { ...conditions, ...decodeAppendHeader(extension) }
  const ack = await stream.append(inputs, extended)
  const isForProtobuf = mediaKind(exchange.header('accept')) === 'protobuf'
  const reply = isForProtobuf ? protobufReply(encodeAppendAck(ack)) : jsonReply(appendAckJson(ack))
  if (extension === undefined && ack.duplicate === undefined) return reply
  const type = isForProtobuf ? 'application/protobuf' : 'application/json'
  const result: AppendHeaderReply = ack.duplicate ? 'duplicate' : 'stored'
  // Member by member: spreading costs more than everything else that is done for the header.
  const headers = { 'content-type': type, [APPEND_HEADER]: result }
  return { status: 200, headers, body: reply.body }
}
