import { create, toBinary } from '@bufbuild/protobuf'
import type { AppendAck, AppendConditions, RecordInput, StreamPosition } from '../../src/index.ts'
import { EMPTY_BYTES, utf8 } from '../../src/model/bytes.ts'
import { AppendInputSchema } from '../../src/wire/gen/records_pb.ts'
import { integerOf, objectOf, required } from '../../src/wire/json-members.ts'
import type { JsonObject } from '../../src/wire/json-reader.ts'
import type { Client } from './client.ts'
import { resourcePath, type StreamName } from './stream-name.ts'

/** Appends one batch through the HTTP API. */
export function appendRecords(
  client: Client,
  name: StreamName,
  records: readonly RecordInput[],
  { fencingToken, matchSeqNum }: AppendConditions = {},
): Promise<AppendAck> {
  const input = create(AppendInputSchema, {
    ...(fencingToken !== undefined && { fencingToken }),
    ...(matchSeqNum !== undefined && { matchSeqNum: BigInt(matchSeqNum) }),
    records: records.map(messageOf),
  })
  const call = {
    method: 'POST',
    path: `${resourcePath(name)}/records`,
    basin: name.basin,
    type: 'application/protobuf',
    body: toBinary(AppendInputSchema, input),
  } as const
  return client.json(call, (ack) => ({
    start: position(ack, 'start'),
    end: position(ack, 'end'),
    tail: position(ack, 'tail'),
  }))
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
