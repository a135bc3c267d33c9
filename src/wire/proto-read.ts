import { create, toBinary } from '@bufbuild/protobuf'
import { concatBytes } from '../model/bytes.ts'
import type { StreamPosition } from '../model/position.ts'
import type { ReadBatch } from '../storage/record-batch.ts'
import type { Compression } from './frame.ts'
import { ReadBatchSchema } from './gen/records_pb.ts'
import { frameMessage } from './message.ts'
import { positionMessage } from './proto-position.ts'

/**
 * Encodes a batch as a `ReadBatch` message (wire-behaviour.md 6.6): its block as it is, followed by the tail. A batch without a tail
 * shares its memory with the block: do not write to it.
 */
export function encodeReadBatch(batch: ReadBatch): Uint8Array {
  return batch.tail === undefined ? batch.data : concatBytes([batch.data, encodeTail(batch.tail)])
}

/** Encodes a heartbeat: a `ReadBatch` message that has a tail and no records. */
export function encodeHeartbeat(tail: StreamPosition): Uint8Array {
  return encodeTail(tail)
}

function encodeTail(tail: StreamPosition): Uint8Array {
  return toBinary(ReadBatchSchema, create(ReadBatchSchema, { tail: positionMessage(tail) }))
}

const frames = new WeakMap<ReadBatch, Map<Compression | undefined, Promise<Uint8Array>>>()

/**
 * The session frame of a batch. Made once for each batch and algorithm: all followers that are handed the same batch object send the
 * same bytes. Do not write to them.
 */
export function readBatchFrame(batch: ReadBatch, compression: Compression | undefined): Promise<Uint8Array> {
  let framesOfBatch = frames.get(batch)
  if (framesOfBatch === undefined) {
    framesOfBatch = new Map()
    frames.set(batch, framesOfBatch)
  }
  let frame = framesOfBatch.get(compression)
  if (frame === undefined) {
    frame = frameMessage(encodeReadBatch(batch), compression)
    framesOfBatch.set(compression, frame)
    // A failure is not kept: the next reader tries again.
    frame.catch(() => framesOfBatch.delete(compression))
  }
  return frame
}

/** The session frame of a heartbeat; too short to be compressed. */
export function heartbeatFrame(tail: StreamPosition): Promise<Uint8Array> {
  return frameMessage(encodeHeartbeat(tail), undefined)
}
