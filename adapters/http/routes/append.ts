import { parseDataFormat } from '../../../src/wire/data-format.ts'
import { appendAckJson, decodeAppendJson } from '../../../src/wire/json-append.ts'
import { ackForm, appendForm } from '../../../src/wire/media-type.ts'
import { decodeAppendInput, encodeAppendAck } from '../../../src/wire/proto-append.ts'
import { encryptionKey } from '../encryption-key.ts'
import { jsonReply, protobufReply } from '../reply.ts'
import { jsonBody, wholeBody } from '../request-body.ts'
import type { RequestContext } from '../request-context.ts'
import type { Endpoint } from '../router.ts'
import { appendSession } from './append-session.ts'

/** An append of one batch, or a session of them. What is wrong with the body is told before what is wrong with the stream. */
export const append: Endpoint = async (context) => {
  const basin = context.basinAddress()
  const name = context.pathParameter('stream')
  const stream = context.stream(basin, name, encryptionKey(context))
  const form = appendForm(context.header('content-type'), context.settings.words)
  if (form === 'session') return appendSession(context, stream)
  const { inputs, conditions } = form === 'json' ? await jsonInput(context) : await protobufInput(context)
  const ack = await stream.append(inputs, conditions)
  return ackForm(context.header('accept')) === 'protobuf'
    ? protobufReply(encodeAppendAck(ack))
    : jsonReply(appendAckJson(ack))
}

async function jsonInput(context: RequestContext) {
  const format = parseDataFormat(context.vendorHeader('format'), context.vendorHeaderName('format'))
  return decodeAppendJson(await jsonBody(context), format)
}

async function protobufInput(context: RequestContext) {
  return decodeAppendInput(await wholeBody(context, 'bad_proto'), 'bad_proto')
}
