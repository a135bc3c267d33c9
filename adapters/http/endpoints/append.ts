import { decodeAppendHeader } from '../../../src/wire/append-header.ts'
import { APPEND_HEADER, type AppendHeaderReply } from '../../../src/wire/append-header-name.ts'
import { appendAckJson, decodeAppendJson } from '../../../src/wire/json-append.ts'
import { ackForm, appendForm } from '../../../src/wire/media-type.ts'
import { decodeAppendInput, encodeAppendAck } from '../../../src/wire/proto-records.ts'
import { jsonBody, wholeBody } from '../body.ts'
import { jsonReply, protobufReply } from '../reply.ts'
import type { Endpoint } from '../request.ts'
import { appendSession } from './append-session.ts'

/** Appends one batch, or opens an append session. Errors in the body come before those of the stream. */
export const append: Endpoint = async (request, hw) => {
  const stream = request.streamOf(hw)
  const form = appendForm(request.exchange.header('content-type'), request.settings.headerPrefixes)
  if (form === 'session') return appendSession(request, stream)
  const format = form === 'json' ? request.dataFormat : undefined
  const reading = form === 'json' ? jsonBody(request) : wholeBody(request, 'bad_proto')
  const body = reading instanceof Promise ? await reading : reading
  const { inputs, conditions } =
    format === undefined ? decodeAppendInput(body, 'bad_proto') : decodeAppendJson(body, format)
  const extension = request.exchange.header(APPEND_HEADER)
  const extended = extension === undefined ? conditions : { ...conditions, ...decodeAppendHeader(extension) }
  const ack = await stream.append(inputs, extended)
  const reply =
    ackForm(request.exchange.header('accept')) === 'protobuf'
      ? protobufReply(encodeAppendAck(ack))
      : jsonReply(appendAckJson(ack))
  if (extension === undefined && ack.duplicate === undefined) return reply
  const result: AppendHeaderReply = ack.duplicate ? 'duplicate' : 'stored'
  return { ...reply, headers: { ...reply.headers, [APPEND_HEADER]: result } }
}
