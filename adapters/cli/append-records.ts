import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { type AppendAck, HeadwaterError, type RecordInput, type StreamPosition } from '../../src/index.ts'
import type { AppendConditions } from '../../src/model/append-input.ts'
import { concatBytes, EMPTY_BYTES, utf8 } from '../../src/model/bytes.ts'
import { FRAME_PAYLOAD_MAX, messageFrameHead } from '../../src/wire/frame.ts'
import {
  AppendAckSchema,
  AppendInputSchema,
  type StreamPosition as PositionMessage,
} from '../../src/wire/gen/records_pb.ts'
import { integerOf, objectOf, required } from '../../src/wire/json-members.ts'
import type { JsonObject } from '../../src/wire/json-reader.ts'
import type { Client } from './client.ts'
import { CliError } from './errors.ts'
import { resourcePath, type StreamName } from './stream-name.ts'

/** Appends one batch through the HTTP API. */
export function appendRecords(
  client: Client,
  name: StreamName,
  records: readonly RecordInput[],
  conditions: AppendConditions = {},
): Promise<AppendAck> {
  const type = 'application/protobuf'
  const call = { ...appendCall(name), type, body: appendMessage(records, conditions) } as const
  return client.json(call, (ack) => ({
    start: position(ack, 'start'),
    end: position(ack, 'end'),
    tail: position(ack, 'tail'),
  }))
}

/**
 * Appends batches in order, with one request: an append session whose body is complete. Yields the ack of
 * each batch when it is durable. The first batch that fails ends the session, and none after it is stored.
 *
 * @param frames Of {@link appendFrame}.
 */
export async function* appendBatches(
  client: Client,
  name: StreamName,
  frames: readonly Uint8Array[],
): AsyncGenerator<AppendAck> {
  let acks = 0
  try {
    for await (const ack of client.session({ ...appendCall(name), body: concatBytes(frames) }, decodeAck)) {
      if (++acks <= frames.length) yield ack
    }
  } catch (error) {
    // After the last ack, the connection does not matter.
    if (acks < frames.length) throw error
  }
  if (acks === frames.length) return
  const counts = `${acks} acks of ${frames.length} batches`
  throw new CliError(1, `unexpected response: ${counts}; others may have been stored`)
}

/** Encodes a batch for {@link appendBatches}. */
export function appendFrame(records: readonly RecordInput[], conditions: AppendConditions): Uint8Array {
  const message = appendMessage(records, conditions)
  if (message.length > FRAME_PAYLOAD_MAX) throw new CliError(1, 'the headers of a batch are too long')
  return concatBytes([messageFrameHead(message.length), message])
}

function appendCall(name: StreamName) {
  return { method: 'POST', path: `${resourcePath(name)}/records`, basin: name.basin } as const
}

function appendMessage(
  records: readonly RecordInput[],
  { fencingToken, matchSeqNum }: AppendConditions,
): Uint8Array {
  const input = create(AppendInputSchema, {
    ...(fencingToken !== undefined && { fencingToken }),
    ...(matchSeqNum !== undefined && { matchSeqNum: BigInt(matchSeqNum) }),
    records: records.map(messageOf),
  })
  return toBinary(AppendInputSchema, input)
}

function messageOf(record: RecordInput) {
  if (typeof record === 'string' || record instanceof Uint8Array) return { body: bytesOf(record) }
  const { body = EMPTY_BYTES, headers = [], timestamp } = record
  return {
    body: bytesOf(body),
    headers: headers.map(([name, value]) => ({ name: bytesOf(name), value: bytesOf(value) })),
    ...(timestamp !== undefined && { timestamp: BigInt(Number(timestamp)) }),
  }
}

function bytesOf(value: Uint8Array | string): Uint8Array {
  return typeof value === 'string' ? utf8(value) : value
}

/** Decodes a position in a JSON response. */
export function position(object: JsonObject, member: string): StreamPosition {
  const at = required(object, member, objectOf)
  return { seqNum: required(at, 'seq_num', integerOf), timestamp: required(at, 'timestamp', integerOf) }
}

function decodeAck(message: Uint8Array): AppendAck {
  try {
    const { start, end, tail } = fromBinary(AppendAckSchema, message)
    if (start && end && tail) {
      return { start: positionOf(start), end: positionOf(end), tail: positionOf(tail) }
    }
  } catch {
    // Not a protobuf message.
  }
  throw new HeadwaterError('bad_proto', 'invalid ack')
}

function positionOf({ seqNum, timestamp }: PositionMessage): StreamPosition {
  return { seqNum: Number(seqNum), timestamp: Number(timestamp) }
}
