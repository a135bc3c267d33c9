import { describe, expect, test } from 'vitest'
import { decompress } from '../../src/wire/compression.ts'
import { BASIN, bytesOf, RECORDS, startWithStream } from './support.ts'

describe('responses', () => {
  test.each(['gzip', 'zstd'] as const)('of more than 1024 bytes are compressed by %s', async (coding) => {
    const { call, hw } = await startWithStream()
    await hw.basin(BASIN).stream('s').append('x'.repeat(5000))
    const headers = { 'accept-encoding': `br, ${coding}` }
    const response = await call('GET', `${RECORDS}?seq_num=0`, { headers })
    expect(response.headers.get('content-encoding')).toBe(coding)
    expect(response.headers.get('vary')).toContain('accept-encoding')
    const body = await bytesOf(response)
    expect(body.length).toBeLessThan(500)
    const text = new TextDecoder().decode(
      await decompress(coding, body, { bytesMax: 10_000, code: 'bad_json' }),
    )
    expect(JSON.parse(text)).toMatchObject({ records: [{ body: 'x'.repeat(5000) }] })
    const protobuf = await call('GET', `${RECORDS}?seq_num=0`, {
      headers: { ...headers, accept: 'application/protobuf' },
    })
    expect(protobuf.headers.get('content-encoding')).toBe(coding)
  })

  test.each([undefined, 'br', 'gzip;q=0', 'identity'])('are plain for %s', async (accepted) => {
    const { call, hw } = await startWithStream()
    await hw.basin(BASIN).stream('s').append('x'.repeat(5000))
    const headers = accepted === undefined ? {} : { 'accept-encoding': accepted }
    const response = await call('GET', `${RECORDS}?seq_num=0`, { headers })
    expect(response.headers.has('content-encoding')).toBe(false)
    expect(response.headers.get('vary')).toContain('accept-encoding')
    expect(await response.json()).toMatchObject({ records: [{ body: 'x'.repeat(5000) }] })
  })

  test('of 1024 bytes are plain', async () => {
    const { call, hw } = await startWithStream()
    const envelope = '{"records":[{"seq_num":0,"timestamp":1,"body":""}]}'.length
    await hw
      .basin(BASIN)
      .stream('s')
      .append({ body: 'x'.repeat(1024 - envelope), timestamp: 1 })
    const response = await call('GET', `${RECORDS}?seq_num=0`, { headers: { 'accept-encoding': 'gzip' } })
    expect(response.headers.has('content-encoding')).toBe(false)
    expect((await bytesOf(response)).length).toBe(1024)
  })
})
