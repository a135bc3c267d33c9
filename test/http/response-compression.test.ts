import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { createHandler } from '../../adapters/http/index.ts'
import { decompress } from '../../src/wire/compression.ts'
import { BASIN, bytesOf, RECORDS, startWithStream } from './support.ts'

describe('responses', () => {
  test.each(['gzip', 'zstd'] as const)(
    'are compressed by %s if they have more than 1024 bytes',
    async (coding) => {
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
    },
  )

  test.each([undefined, 'br', 'gzip;q=0', 'identity'])('are plain for %s', async (accepted) => {
    const { call, hw } = await startWithStream()
    await hw.basin(BASIN).stream('s').append('x'.repeat(5000))
    const headers = accepted === undefined ? {} : { 'accept-encoding': accepted }
    const response = await call('GET', `${RECORDS}?seq_num=0`, { headers })
    expect(response.headers.has('content-encoding')).toBe(false)
    expect(response.headers.get('vary')).toContain('accept-encoding')
    expect(await response.json()).toMatchObject({ records: [{ body: 'x'.repeat(5000) }] })
  })

  test('are plain with `compression: false`', async () => {
    const { call, hw } = await startWithStream({ compression: false })
    await hw.basin(BASIN).stream('s').append('x'.repeat(5000))
    const response = await call('GET', `${RECORDS}?seq_num=0`, { headers: { 'accept-encoding': 'gzip' } })
    expect(response.headers.has('content-encoding')).toBe(false)
    expect(response.headers.has('vary')).toBe(false)
    expect(await response.json()).toMatchObject({ records: [{ body: 'x'.repeat(5000) }] })
  })

  test('are plain for a request of Next, which drops their `content-encoding`', async () => {
    const { hw } = await startWithStream()
    await hw.basin(BASIN).stream('s').append('x'.repeat(5000))
    const headers = { 'accept-encoding': 'gzip', 'svc-basin': BASIN }
    const request = new Request(`http://localhost${RECORDS}?seq_num=0`, { headers })
    const ofNext = Object.assign(request, { nextUrl: new URL(request.url) })
    const response = await createHandler(hw, { auth: 'none' })(ofNext)
    expect(response.headers.has('content-encoding')).toBe(false)
    expect(await response.json()).toMatchObject({ records: [{ body: 'x'.repeat(5000) }] })
  })

  test('instruct workerd not to compress them again', async () => {
    const inits: unknown[] = []
    const PlainResponse = globalThis.Response
    vi.stubGlobal(
      'Response',
      class extends PlainResponse {
        constructor(body: BodyInit | null, init: ResponseInit) {
          super(body, init)
          inits.push(init)
        }
      },
    )
    onTestFinished(() => void vi.unstubAllGlobals())
    const { call, hw } = await startWithStream()
    await hw.basin(BASIN).stream('s').append('x'.repeat(5000))
    await call('GET', `${RECORDS}?seq_num=0`, { headers: { 'accept-encoding': 'gzip' } })
    expect(inits).toMatchObject([{ encodeBody: 'manual', headers: { 'content-encoding': 'gzip' } }])
  })
})
