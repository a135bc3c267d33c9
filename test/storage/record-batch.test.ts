import { describe, expect, it } from 'vitest'
import { utf8 } from '../../src/model/bytes.ts'
import type { SequencedRecord } from '../../src/model/record.ts'
import { encodeRecords } from '../../src/storage/block-codec.ts'
import { RecordBatch } from '../../src/storage/record-batch.ts'

const records: readonly SequencedRecord[] = ['a', 'b', 'c'].map((text, seqNum) => ({
  seqNum,
  timestamp: 100 + seqNum,
  headers: [],
  body: utf8(text),
}))
const data = encodeRecords(records)
const blocks = [encodeRecords(records.slice(0, 2)), encodeRecords(records.slice(2))]

describe('a batch of records', () => {
  it.each<[string, () => RecordBatch]>([
    ['records', () => new RecordBatch(records)],
    ['bytes', () => new RecordBatch(undefined, [data])],
    ['several blocks', () => new RecordBatch(undefined, blocks)],
  ])('made of %s has the records and the bytes, whichever is requested first', (_, make) => {
    const recordsFirst = make()
    expect(recordsFirst.records).toEqual(records)
    expect(recordsFirst.data).toEqual(data)
    const bytesFirst = make()
    expect(bytesFirst.data).toEqual(data)
    expect(bytesFirst.records).toEqual(records)
  })

  it('creates each form once', () => {
    const batch = new RecordBatch(undefined, blocks)
    expect(batch.data).toBe(batch.data)
    expect(batch.records).toBe(batch.records)
  })

  it('is empty without blocks', () => {
    const batch = new RecordBatch(undefined, [])
    expect(batch.records).toEqual([])
    expect(batch.data).toHaveLength(0)
  })
})
