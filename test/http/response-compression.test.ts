import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { createHandler, type HandlerOptions } from '../../adapters/http/index.ts'
import { decompress } from '../../src/wire/compression.ts'
import { BASIN, bytesOf, RECORDS, startWithStream } from './support.ts'

const TEXT = 'x'.repeat(5000)

/** Reads a record that can be compressed. */
async function read(accepted: string | undefined, options: HandlerOptions = {}, accept = 'application/json') {
  const { call, hw } = await startWithStream(options)
  await hw.basin(BASIN).stream('s').append(TEXT)
  const headers = { accept, ...(accepted !== undefined && { 'accept-encoding': accepted }) }
  return call('GET', `${RECORDS}?seq_num=0`, { headers })
}

describe('responses', () => {
  test.each(['gzip', 'zstd'] as const)(
    'are compressed by %s if they have more than 1024 bytes',
    async (coding) => {
      const response = await read(`br, ${coding}`)
      expect(response.headers.get('content-encoding')).toBe(coding)
      expect(response.headers.get('vary')).toContain('accept-encoding')
      const body = await bytesOf(response)
      expect(body.length).toBeLessThan(500)
      const plain = await decompress(coding, body, { bytesMax: 10_000, code: 'bad_json' })
      expect(JSON.parse(new TextDecoder().decode(plain))).toMatchObject({ records: [{ body: TEXT }] })
      const protobuf = await read(coding, {}, 'application/protobuf')
      expect(protobuf.headers.get('content-encoding')).toBe(coding)
    },
  )

  test.each<[string | undefined, HandlerOptions]>([
    [undefined, {}],
    ['br, gzip;q=0', {}],
    ['gzip', { compression: false }],
  ])('are plain for %s with %j', async (accepted, options) => {
    const response = await read(accepted, options)
    expect(response.headers.has('content-encoding')).toBe(false)
    expect(response.headers.get('vary')).toBe(options.compression === false ? null : 'accept-encoding')
    expect(await response.json()).toMatchObject({ records: [{ body: TEXT }] })
  })

  test('are plain for a request of Next, which drops their `content-encoding`', async () => {
    const { hw } = await startWithStream()
    await hw.basin(BASIN).stream('s').append(TEXT)
    const headers = { 'accept-encoding': 'gzip', 'svc-basin': BASIN }
    const request = new Request(`http://localhost${RECORDS}?seq_num=0`, { headers })
    const ofNext = Object.assign(request, { nextUrl: new URL(request.url) })
    const response = await createHandler(hw, { auth: 'none' })(ofNext)
    expect(response.headers.has('content-encoding')).toBe(false)
    expect(await response.json()).toMatchObject({ records: [{ body: TEXT }] })
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
    await read('gzip')
    expect(inits).toMatchObject([{ encodeBody: 'manual', headers: { 'content-encoding': 'gzip' } }])
  })
})
