import { create } from '@bufbuild/protobuf'
import type { StreamPosition } from '../model/position.ts'
import { type StreamPosition as PositionMessage, StreamPositionSchema } from './gen/records_pb.ts'

export function positionMessage({ seqNum, timestamp }: StreamPosition): PositionMessage {
  return create(StreamPositionSchema, { seqNum: BigInt(seqNum), timestamp: BigInt(timestamp) })
}
