// @module-tag slow

import { describe, expect, test } from 'vitest'
import { until } from '../node/support.ts'
import { BodyReader, bytesOf, framesOf, RECORDS, startWithStream } from './support.ts'

const session = { 'content-type': 'svcs/proto' }

/** An append of one record with `n` headers of 1 + 1 bytes: 4 bytes each metered, 8 as protobuf. */
function appendOfHeaders(n: number, timestamp: Uint8Array = new Uint8Array(0)): Uint8Array {
  const header = Buffer.from([0x12, 6, 0x0a, 1, 0x61, 0x12, 1, 0x62])
  const record = Buffer.alloc(n * header.length)
  for (let i = 0; i < n; i++) header.copy(record, i * header.length)
  const varint = (v: number) => {
    const out: number[] = []
    for (; v > 127; v = Math.floor(v / 128)) out.push((v % 128) | 128)
    out.push(v)
    return Buffer.from(out)
  }
  return Buffer.concat([Buffer.from([0x0a]), varint(timestamp.length + record.length), timestamp, record])
}

describe('a record with very many headers', () => {
  const numbers = Buffer.from([0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x0f])
  const append = (service: Awaited<ReturnType<typeof startWithStream>>, body: Uint8Array) =>
    service.call('POST', RECORDS, { headers: { 'content-type': 'application/protobuf' }, body })

  test('reaches binary readers at the largest size, live and from history', async () => {
    const service = await startWithStream()
    const reader = new BodyReader(await service.call('GET', RECORDS, { headers: session }))
    // The heartbeat at the tail, which may not come once there is a record.
    await until(() => reader.bytes.length > 0)
    expect((await append(service, appendOfHeaders(262_120, numbers))).status).toBe(200)
    await until(() => reader.bytes.length > 2_000_000)
    await reader.cancel()
    const live = await framesOf(reader.bytes)
    expect(live.map(({ kind }) => kind)).toEqual(['message', 'message'])

    await service.call('POST', RECORDS, { json: { records: Array.from({ length: 500 }, () => ({})) } })
    const history = await service.call('GET', `${RECORDS}?seq_num=0&count=501`, { headers: session })
    const frames = await framesOf(await bytesOf(history))
    expect(frames.map(({ kind }) => kind)).toEqual(['message', 'message'])
    expect(service.errors).toEqual([])
  })
})
