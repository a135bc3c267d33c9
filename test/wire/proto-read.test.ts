import { fromBinary } from '@bufbuild/protobuf'
import { describe, expect, it } from 'vitest'
import { utf8 } from '../../src/model/bytes.ts'
import type { StreamPosition } from '../../src/model/position.ts'
import type { SequencedRecord } from '../../src/model/record.ts'
import { ReadBatch, RecordBatch } from '../../src/storage/record-batch.ts'
import { FrameDecoder, type MessageFrame } from '../../src/wire/frame.ts'
import { ReadBatchSchema } from '../../src/wire/gen/records_pb.ts'
import {
  encodeHeartbeat,
  encodeReadBatch,
  heartbeatFrame,
  readBatchFrame,
} from '../../src/wire/proto-records.ts'
import { messageOf } from '../../src/wire/session-frames.ts'

const records: SequencedRecord[] = [
  { seqNum: 0, timestamp: 0, headers: [], body: utf8('first') },
  { seqNum: 1, timestamp: 2 ** 53 - 1, headers: [[utf8('name'), utf8('')]], body: utf8('x'.repeat(2000)) },
]

function batchOf(records: readonly SequencedRecord[], tail?: StreamPosition): ReadBatch {
  return new ReadBatch(
    new RecordBatch(records),
    { count: records.length, meteredBytes: 0, lastSeqNum: 0 },
    tail,
  )
}

function framesOf(data: Uint8Array): MessageFrame {
  const decoder = new FrameDecoder()
  const [frame] = [...decoder.decode(data)]
  decoder.end()
  return frame as MessageFrame
}

describe('encodeReadBatch', () => {
  it('consists of the block and the tail', () => {
    const read = fromBinary(ReadBatchSchema, encodeReadBatch(batchOf(records, { seqNum: 300, timestamp: 5 })))
    expect(read.records.map(({ seqNum, timestamp }) => [seqNum, timestamp])).toEqual([
      [0n, 0n],
      [1n, 2n ** 53n - 1n],
    ])
    expect(read.records[1]!.headers[0]).toMatchObject({ name: utf8('name'), value: utf8('') })
    expect(read.records[0]!.body).toEqual(utf8('first'))
    expect(read.tail).toMatchObject({ seqNum: 300n, timestamp: 5n })
  })

  it('is the block itself without a tail', () => {
    const batch = batchOf(records)
    expect(encodeReadBatch(batch)).toBe(batch.data)
    expect(fromBinary(ReadBatchSchema, batch.data).tail).toBeUndefined()
    expect(encodeReadBatch(batchOf([]))).toHaveLength(0)
  })

  it('contains a tail of zeros', () => {
    expect([...encodeReadBatch(batchOf([], { seqNum: 0, timestamp: 0 }))]).toEqual([0x12, 0])
    expect([...encodeHeartbeat({ seqNum: 0, timestamp: 0 })]).toEqual([0x12, 0])
  })

  it('has no records if it is a heartbeat', () => {
    const read = fromBinary(ReadBatchSchema, encodeHeartbeat({ seqNum: 2 ** 53 - 1, timestamp: 7 }))
    expect(read.records).toEqual([])
    expect(read.tail).toMatchObject({ seqNum: 2n ** 53n - 1n, timestamp: 7n })
  })
})

describe('frames of a session', () => {
  it.each([undefined, 'zstd', 'gzip'] as const)('contain the batch, with %s', async (compression) => {
    const batch = batchOf(records, { seqNum: 2, timestamp: 3 })
    const frame = framesOf(await readBatchFrame(batch, compression))
    expect(frame.compression).toBe(compression)
    expect(await messageOf(frame)).toEqual(encodeReadBatch(batch))
  })

  it('are encoded once per batch and algorithm', async () => {
    const batch = batchOf(records)
    const readers = await Promise.all(Array.from({ length: 1000 }, () => readBatchFrame(batch, 'zstd')))
    expect(new Set(readers).size).toBe(1)
    expect(await readBatchFrame(batch, undefined)).not.toBe(readers[0])
    expect(await readBatchFrame(batch, undefined)).toBe(await readBatchFrame(batch, undefined))
    expect(await readBatchFrame(batchOf(records), 'zstd')).not.toBe(readers[0])
  })

  it('are encoded again after a failure', async () => {
    const batch = batchOf(records)
    let calls = 0
    Object.defineProperty(batch, 'data', {
      get: () => (++calls === 1 ? new Uint8Array(3_000_000) : records[0]!.body),
    })
    expect(() => readBatchFrame(batch, undefined)).toThrow(RangeError)
    expect(framesOf(await readBatchFrame(batch, undefined)).payload).toEqual(utf8('first'))
  })

  it('of heartbeats are never compressed', async () => {
    const frame = framesOf(await heartbeatFrame({ seqNum: 5, timestamp: 6 }))
    expect(frame).toMatchObject({ kind: 'message', compression: undefined })
    expect(frame.payload).toEqual(encodeHeartbeat({ seqNum: 5, timestamp: 6 }))
  })
})
