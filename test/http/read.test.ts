import { fromBinary } from '@bufbuild/protobuf'
import { describe, expect, test } from 'vitest'
import { ReadBatchSchema } from '../wire/gen/records_pb.ts'
import { bytesOf, RECORDS, startWithRecords, tailOf } from './support.ts'

const NOW = Date.UTC(2025, 0, 1)

describe('unary read', () => {
  test('is JSON unless `accept` begins with another form', async () => {
    const { call } = await startWithRecords('a', 'b', 'c')
    const headers = { accept: 'text/html, application/protobuf' }
    const response = await call('GET', `${RECORDS}?seq_num=1&count=1`, { headers })
    expect([response.status, response.headers.get('content-type')]).toEqual([200, 'application/json'])
    expect(await response.text()).toBe(`{"records":[{"seq_num":1,"timestamp":${NOW},"body":"b"}]}`)
  })

  test('is protobuf if `accept` begins with it', async () => {
    const { call } = await startWithRecords('a', 'b', 'c')
    const headers = { accept: 'application/protobuf, application/json' }
    const response = await call('GET', `${RECORDS}?tail_offset=2`, { headers })
    expect(response.headers.get('content-type')).toBe('application/protobuf')
    const { records, tail } = fromBinary(ReadBatchSchema, await bytesOf(response))
    expect([records.map(({ seqNum }) => Number(seqNum)), Number(tail!.seqNum)]).toEqual([[1, 2], 3])
    const rejected = await call('GET', RECORDS, { headers })
    expect([rejected.status, rejected.headers.get('content-type')]).toEqual([416, 'application/json'])
    expect(await rejected.json()).toEqual({ tail: { seq_num: 3, timestamp: NOW } })
  })

  test('includes the tail if it reaches the tail, and only then', async () => {
    const { call } = await startWithRecords('a', 'b', 'c')
    const tail = { seq_num: 3, timestamp: NOW }
    for (const [query, expected] of [
      ['seq_num=0', tail],
      ['seq_num=2', tail],
      ['seq_num=0&count=3', tail],
      ['seq_num=0&count=2', undefined],
      ['seq_num=0&count=0', undefined],
    ] as const) {
      const batch = (await (await call('GET', `${RECORDS}?${query}`)).json()) as { tail?: object }
      expect(batch.tail).toEqual(expected)
    }
  })
})

test('returns the tail', async () => {
  const service = await startWithRecords('a', 'b', 'c')
  const response = await service.call('GET', `${RECORDS}/tail`, {
    headers: { 'svc-encryption-key': 'x'.repeat(99) },
  })
  expect([response.status, await response.text()]).toEqual([200, `{"tail":{"seq_num":3,"timestamp":${NOW}}}`])
  expect(await tailOf(service)).toBe(3)
})
