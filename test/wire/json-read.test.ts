import { describe, expect, it } from 'vitest'
import { utf8 } from '../../src/model/bytes.ts'
import { fenceRecord, trimRecord } from '../../src/model/command.ts'
import type { StreamPosition } from '../../src/model/position.ts'
import { meteredBytesOf, type SequencedRecord } from '../../src/model/record.ts'
import { ReadBatch, RecordBatch } from '../../src/storage/record-batch.ts'
import { pingJson, positionJson, tailJson } from '../../src/wire/json-position.ts'
import { readBatchJson } from '../../src/wire/json-read.ts'

function batchOf(records: readonly SequencedRecord[], tail?: StreamPosition): ReadBatch {
  const meteredBytes = records.reduce((sum, { headers, body }) => sum + meteredBytesOf(headers, body), 0)
  const summary = { count: records.length, meteredBytes, lastSeqNum: records.at(-1)?.seqNum ?? 0 }
  return new ReadBatch(RecordBatch.ofRecords(records), summary, tail)
}

const record = (body: Uint8Array, headers: SequencedRecord['headers'] = []): SequencedRecord => ({
  seqNum: 3,
  timestamp: 5,
  headers,
  body,
})

describe('readBatchJson', () => {
  it('writes the members in their order', () => {
    const batch = batchOf([record(utf8('hé'), [[utf8('a'), utf8('1')]])], { seqNum: 4, timestamp: 5 })
    expect(readBatchJson(batch, 'raw')).toBe(
      '{"records":[{"seq_num":3,"timestamp":5,"headers":[["a","1"]],"body":"hé"}],"tail":{"seq_num":4,"timestamp":5}}',
    )
    expect(readBatchJson(batch, 'base64')).toBe(
      '{"records":[{"seq_num":3,"timestamp":5,"headers":[["YQ==","MQ=="]],"body":"aMOp"}],"tail":{"seq_num":4,"timestamp":5}}',
    )
  })

  it('leaves out empty headers, an empty body and a missing tail', () => {
    const batch = batchOf([record(utf8(''))])
    expect(readBatchJson(batch, 'raw')).toBe('{"records":[{"seq_num":3,"timestamp":5}]}')
    expect(readBatchJson(batch, 'base64')).toBe('{"records":[{"seq_num":3,"timestamp":5}]}')
  })

  it('writes an empty batch', () => {
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

  it('writes commands like any record', () => {
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

  it('has no line break whatever the records hold', () => {
    const batch = batchOf([record(utf8('a\nb\r\n\u0000"\\'), [[utf8('\n'), utf8('\r')]])])
    const text = readBatchJson(batch, 'raw')
    expect(text).not.toMatch(/[\r\n]/)
    expect(JSON.parse(text).records[0].body).toBe('a\nb\r\n\u0000"\\')
  })

  it('is made once for all readers of a batch', () => {
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
      readBatchJson(counted, 'raw')
      readBatchJson(counted, 'base64')
    }
    expect(decodings).toBe(2)
  })

  it('does not confuse batches that share records', () => {
    const records = RecordBatch.ofRecords([record(utf8('x'))])
    const summary = { count: 1, meteredBytes: 9, lastSeqNum: 3 }
    const live = new ReadBatch(records, summary, { seqNum: 4, timestamp: 5 })
    expect(readBatchJson(live, 'raw')).toContain('"tail"')
    expect(readBatchJson(new ReadBatch(records, summary), 'raw')).not.toContain('"tail"')
  })

  it('reads a batch that came as bytes', () => {
    const data = RecordBatch.ofRecords([record(utf8('x'))]).data
    const batch = new ReadBatch(RecordBatch.ofData(data), { count: 1, meteredBytes: 9, lastSeqNum: 3 })
    expect(readBatchJson(batch, 'raw')).toBe('{"records":[{"seq_num":3,"timestamp":5,"body":"x"}]}')
  })
})

describe('positions', () => {
  const tail = { seqNum: 9_007_199_254_740_991, timestamp: 0 }

  it('writes them with snake case', () => {
    expect(positionJson(tail)).toBe('{"seq_num":9007199254740991,"timestamp":0}')
    expect(tailJson(tail)).toBe('{"tail":{"seq_num":9007199254740991,"timestamp":0}}')
    expect(pingJson(12, tail)).toBe('{"timestamp":12,"tail":{"seq_num":9007199254740991,"timestamp":0}}')
  })
})
