import type { AppendAck, Engine, ProducerBatch, RecordInput } from '../../src/index.ts'
import { largeAppendBatch } from '../../src/model/append-input.ts'
import { HeadwaterError } from '../../src/model/errors.ts'
import { closeRecord } from '../../src/model/record.ts'
import { wholeBody } from '../http/body.ts'
import type { RequestExchange } from '../http/exchange.ts'
import type { Reply } from '../http/reply.ts'
import type { ApiRequest } from '../http/request.ts'
import { assertContentType, isSameType } from './content.ts'
import { DurableStreamsError, headerIntegerOf, isClosing, offsetOf } from './headers.ts'
import { recordsOfMessage } from './messages.ts'
import { type DescribedStream, describedStream, stateForAppend } from './state.ts'

/** Appends a body: one record, or the messages of a JSON stream. Closes the stream if the request says so. */
export async function append(request: ApiRequest, hw: Engine): Promise<Reply> {
  const { exchange } = request
  const stream = request.streamOf(hw)
  const producer = producerBatch(exchange)
  const closes = isClosing(exchange)
  const body = await bodyOf(request)
  const state = await stateForAppend(stream)
  const records = recordsOf(request, state, body, closes)
  const streamSeq = exchange.header('stream-seq')
  let ack: AppendAck
  try {
    ack = await stream.appendChecked(largeAppendBatch(records, { producer, streamSeq }))
  } catch (error) {
    const isEarlier = HeadwaterError.is(error) && error.code === 'already_appended'
    if (producer === undefined || !isEarlier) throw error
    const { tail } = await describedStream(stream, ['append'])
    const next = headersOf(tail.seqNum, closes)
    return { status: 204, headers: { ...next, ...producerHeaders(producer, error.lastSeq!) } }
  }
  const next = headersOf(ack.end.seqNum, closes)
  if (producer === undefined) return { status: 204, headers: next }
  const isNew = ack.duplicate !== true && body.length > 0
  return { status: isNew ? 200 : 204, headers: { ...next, ...producerHeaders(producer, producer.seq) } }
}

/** Reads the body of a request: its errors become 400, and 413 if it is too long. */
export async function bodyOf(request: ApiRequest): Promise<Uint8Array> {
  return wholeBody(request, 'bad_proto')
}

function headersOf(next: number, closes: boolean): Record<string, string> {
  const offset = offsetOf(next)
  return closes ? { 'stream-closed': 'true', 'stream-next-offset': offset } : { 'stream-next-offset': offset }
}

/** The records of a request, with the command that closes the stream. Throws 400, 409. */
function recordsOf(
  { exchange }: ApiRequest,
  { contentType, content, tail }: DescribedStream,
  body: Uint8Array,
  closes: boolean,
): readonly RecordInput[] {
  if (body.length === 0) {
    if (closes) return [closeRecord()]
    throw new DurableStreamsError(400, 'the body must not be empty')
  }
  const given = exchange.header('content-type')
  if (given === undefined) throw new DurableStreamsError(400, '`content-type` is required')
  if (!isSameType(given, contentType)) {
    assertContentType(given)
    // A closed stream takes precedence over a wrong content type.
    if (tail.closed) throw new DurableStreamsError(409, 'the stream is closed', headersOf(tail.seqNum, true))
    throw new DurableStreamsError(409, `the stream has content type ${contentType}`)
  }
  const records = content.messagesOf(body).flatMap(recordsOfMessage)
  if (records.length === 0) throw new DurableStreamsError(400, 'the array must not be empty')
  return closes ? [...records, closeRecord()] : records
}

/** Returns the batch that the producer headers identify; undefined without them. Throws 400. */
function producerBatch(exchange: RequestExchange): ProducerBatch | undefined {
  const id = exchange.header('producer-id')
  const epoch = exchange.header('producer-epoch')
  const seq = exchange.header('producer-seq')
  if (id === undefined && epoch === undefined && seq === undefined) return undefined
  if (id === undefined || epoch === undefined || seq === undefined) {
    throw new DurableStreamsError(
      400,
      '`producer-id`, `producer-epoch` and `producer-seq` require each other',
    )
  }
  return { id, epoch: headerIntegerOf(epoch, 'producer-epoch'), seq: headerIntegerOf(seq, 'producer-seq') }
}

/** @param lastSeq The number of the last batch of the producer that is stored. */
function producerHeaders({ epoch }: ProducerBatch, lastSeq: number): Record<string, string> {
  return { 'producer-epoch': String(epoch), 'producer-seq': String(lastSeq) }
}
