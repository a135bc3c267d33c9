import type { Engine } from '../../src/index.ts'
import type { Reply } from '../http/reply.ts'
import type { ApiRequest } from '../http/request.ts'
import { bodyOf } from './body.ts'
import { isSameType } from './content.ts'
import { DurableStreamsError } from './errors.ts'
import { offsetOf } from './offsets.ts'
import { stateOf } from './state.ts'

/** Appends a body: one record, or the messages of a JSON stream. */
export async function append(request: ApiRequest, hw: Engine): Promise<Reply> {
  const { exchange } = request
  const stream = request.streamOf(hw)
  const body = await bodyOf(request)
  const { contentType, content } = await stateOf(stream, ['append'])
  if (body.length === 0) throw new DurableStreamsError(400, 'the body must not be empty')
  const given = exchange.header('content-type')
  if (given === undefined) throw new DurableStreamsError(400, '`content-type` is required')
  if (!isSameType(given, contentType)) {
    throw new DurableStreamsError(409, `the stream has content type ${contentType}`)
  }
  const records = content.recordsOf(body)
  if (records.length === 0) throw new DurableStreamsError(400, 'the array must not be empty')
  const { end } = await stream.append(records)
  return { status: 204, headers: { 'stream-next-offset': offsetOf(end.seqNum) } }
}
