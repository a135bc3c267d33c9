import { describe, expect, it } from 'vitest'
import { utf8 } from '../../src/model/bytes.ts'
import { fenceRecord, trimRecord } from '../../src/model/command.ts'
import type { StreamPosition } from '../../src/model/position.ts'
import { meteredBytesOf, type SequencedRecord } from '../../src/model/record.ts'
import { ReadBatch, RecordBatch } from '../../src/storage/record-batch.ts'
import {
  pingJson,
  positionJson,
  readBatchJson,
  sharedBatchJson,
  tailJson,
} from '../../src/wire/json-records.ts'

function batchOf(records: readonly SequencedRecord[], tail?: StreamPosition): ReadBatch {
  const meteredBytes = records.reduce((sum, { headers, body }) => sum + meteredBytesOf(headers, body), 0)
  const summary = { count: records.length, meteredBytes, lastSeqNum: records.at(-1)?.seqNum ?? 0 }
  return new ReadBatch(new RecordBatch(records), summary, tail)
}

const record = (body: Uint8Array, headers: SequencedRecord['headers'] = []): SequencedRecord => ({
  seqNum: 3,
  timestamp: 5,
  headers,
  body,
})

describe('readBatchJson', () => {
  it('encodes the members in order', () => {
    const batch = batchOf([record(utf8('hé'), [[utf8('a'), utf8('1')]])], { seqNum: 4, timestamp: 5 })
    expect(readBatchJson(batch, 'raw')).toBe(
      '{"records":[{"seq_num":3,"timestamp":5,"headers":[["a","1"]],"body":"hé"}],"tail":{"seq_num":4,"timestamp":5}}',
    )
    expect(readBatchJson(batch, 'base64')).toBe(
      '{"records":[{"seq_num":3,"timestamp":5,"headers":[["YQ==","MQ=="]],"body":"aMOp"}],"tail":{"seq_num":4,"timestamp":5}}',
    )
  })

  it('omits empty headers, an empty body and a missing tail', () => {
    const batch = batchOf([record(utf8(''))])
    expect(readBatchJson(batch, 'raw')).toBe('{"records":[{"seq_num":3,"timestamp":5}]}')
    expect(readBatchJson(batch, 'base64')).toBe('{"records":[{"seq_num":3,"timestamp":5}]}')
  })

  it('encodes an empty batch', () => {
    expect(readBatchJson(batchOf([]), 'raw')).toBe('{"records":[]}')
    expect(readBatchJson(batchOf([], { seqNum: 0, timestamp: 0 }), 'raw')).toBe(
      '{"records":[],"tail":{"seq_num":0,"timestamp":0}}',
    )
  })

  it('keeps zeros and empty header values', () => {
    const batch = batchOf([{ seqNum: 0, timestamp: 0, headers: [[utf8('a'), utf8('')]], body: utf8('') }])
    expect(readBatchJson(batch, 'raw')).toBe('{"records":[{"seq_num":0,"timestamp":0,"headers":[["a",""]]}]}')
  })

  it.each([
    ['a byte that never occurs', [0x61, 0xff, 0x62], 'a\ufffdb'],
    ['one replacement for each maximal part', [0xe2, 0x82, 0x41, 0xf0, 0x9f], '\ufffdA\ufffd'],
    ['an encoded surrogate', [0xed, 0xa0, 0x80], '\ufffd\ufffd\ufffd'],
    ['a leading byte order mark, kept', [0xef, 0xbb, 0xbf, 0x61], '\ufeffa'],
  ])('raw format is lossy with %s', (_, bytes, text) => {
    const batch = batchOf([record(new Uint8Array(bytes), [[new Uint8Array(bytes), new Uint8Array(bytes)]])])
    expect(JSON.parse(readBatchJson(batch, 'raw')).records[0]).toMatchObject({
      headers: [[text, text]],
      body: text,
    })
    expect(JSON.parse(readBatchJson(batch, 'base64')).records[0].body).toBe(
      Buffer.from(bytes).toString('base64'),
    )
  })

  it('encodes commands like any record', () => {
    const batch = batchOf([
      { seqNum: 0, timestamp: 1, ...fenceRecord('') },
      { seqNum: 1, timestamp: 1, ...trimRecord(258) },
    ])
    expect(readBatchJson(batch, 'base64')).toBe(
      '{"records":[{"seq_num":0,"timestamp":1,"headers":[["","ZmVuY2U="]]},' +
        '{"seq_num":1,"timestamp":1,"headers":[["","dHJpbQ=="]],"body":"AAAAAAAAAQI="}]}',
    )
    expect(readBatchJson(batch, 'raw')).toContain('"headers":[["","fence"]]}')
  })

  it('contains no line break for any records', () => {
    const batch = batchOf([record(utf8('a\nb\r\n\u0000"\\'), [[utf8('\n'), utf8('\r')]])])
    const text = readBatchJson(batch, 'raw')
    expect(text).not.toMatch(/[\r\n]/)
    expect(JSON.parse(text).records[0].body).toBe('a\nb\r\n\u0000"\\')
  })

  it('is encoded once for all readers of a live batch', () => {
    let decodings = 0
    const records = [record(utf8('x'))]
    const batch = batchOf(records)
    const counted = Object.create(batch, {
      records: {
        get() {
          decodings++
          return records
        },
      },
      tail: { value: undefined },
    }) as ReadBatch
    for (let reader = 0; reader < 3; reader++) {
      sharedBatchJson(counted, 'raw')
      sharedBatchJson(counted, 'base64')
    }
    expect(decodings).toBe(2)
  })

  it('distinguishes batches that share records', () => {
    const records = new RecordBatch([record(utf8('x'))])
    const summary = { count: 1, meteredBytes: 9, lastSeqNum: 3 }
    const live = new ReadBatch(records, summary, { seqNum: 4, timestamp: 5 })
    expect(sharedBatchJson(live, 'raw')).toContain('"tail"')
    expect(sharedBatchJson(new ReadBatch(records, summary), 'raw')).not.toContain('"tail"')
  })

  it('encodes a batch that was stored as bytes', () => {
    const data = new RecordBatch([record(utf8('x'))]).data
    const batch = new ReadBatch(new RecordBatch(undefined, [data]), {
      count: 1,
      meteredBytes: 9,
      lastSeqNum: 3,
    })
    expect(readBatchJson(batch, 'raw')).toBe('{"records":[{"seq_num":3,"timestamp":5,"body":"x"}]}')
  })
})

describe('positions', () => {
  const tail = { seqNum: 9_007_199_254_740_991, timestamp: 0 }

  it('encodes them in snake case', () => {
    expect(positionJson(tail)).toBe('{"seq_num":9007199254740991,"timestamp":0}')
    expect(tailJson(tail)).toBe('{"tail":{"seq_num":9007199254740991,"timestamp":0}}')
    expect(pingJson(12, tail)).toBe('{"timestamp":12,"tail":{"seq_num":9007199254740991,"timestamp":0}}')
  })
})
