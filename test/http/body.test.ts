import { gzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { createHandler } from '../../adapters/http/index.ts'
import { compress } from '../../src/wire/compression.ts'
import { inputMessage } from './inputs.ts'
import { BASIN, errorOf, RECORDS, startWithStream, tailOf, Upload } from './support.ts'

const JSON_TYPE = { 'content-type': 'application/json' }
const PROTOBUF = { 'content-type': 'application/protobuf' }
const LIMIT = 2_097_152
const json = (body: string) => new TextEncoder().encode(JSON.stringify({ records: [{ body }] }))

/** A valid append of so many bytes of JSON. */
const jsonOfLength = (length: number) => `{"records":[{}]${' '.repeat(length - 16)}}`

describe('request bodies', () => {
  test('may have 2 MiB, but not one byte more', async () => {
    const service = await startWithStream()
    const append = (length: number) =>
      service.call('POST', RECORDS, { body: jsonOfLength(length), headers: JSON_TYPE })
    expect(await errorOf(await append(LIMIT + 1))).toMatchObject({ status: 400, code: 'bad_json' })
    expect(await tailOf(service)).toBe(0)
    expect((await append(LIMIT)).status).toBe(200)
  })

  test('an endless body is cancelled when it exceeds the limit', async () => {
    const service = await startWithStream()
    const upload = new Upload()
    for (let i = 0; i < 40; i++) upload.write(new Uint8Array(65_536))
    const response = await service.call('POST', RECORDS, { body: upload.body, headers: PROTOBUF })
    expect(await errorOf(response)).toMatchObject({ status: 400, code: 'bad_proto' })
    expect(upload.isCancelled).toBe(true)
    expect(await tailOf(service)).toBe(0)
  })

  describe('in a runtime without request streams', () => {
    async function startWithoutStreams() {
      const { hw } = await startWithStream()
      const handler = createHandler(hw, { auth: 'none' })
      return (path: string, init: RequestInit) => {
        const request = new Request(`http://localhost${path}`, init)
        return handler(Object.defineProperty(request, 'body', { value: undefined }))
      }
    }
    const headers = { 'svc-basin': BASIN, ...JSON_TYPE }

    test('a body is read as a whole, up to the limit', async () => {
      const call = await startWithoutStreams()
      const append = (length: number) =>
        call(RECORDS, { method: 'POST', body: jsonOfLength(length), headers })
      expect((await append(LIMIT)).status).toBe(200)
      expect(await errorOf(await append(LIMIT + 1))).toMatchObject({ status: 400, code: 'bad_json' })
    })

    test('a request may have no body', async () => {
      const call = await startWithoutStreams()
      expect((await call('/v1/streams/another', { method: 'PUT', headers })).status).toBe(201)
      expect((await call(`${RECORDS}/tail`, { headers })).status).toBe(200)
    })
  })

  test('a lower limit applies before and after decompression', async () => {
    const service = await startWithStream()
    const call = service.with({ limits: { bodyBytes: 1000 } })
    const post = (body: Uint8Array, headers: Record<string, string> = {}) =>
      call('POST', RECORDS, { body, headers: { ...JSON_TYPE, ...headers } })
    const large = json('x'.repeat(1000))
    expect((await errorOf(await post(large))).code).toBe('bad_json')
    expect((await errorOf(await post(gzipSync(large), { 'content-encoding': 'gzip' }))).code).toBe('bad_json')
    expect(await tailOf(service)).toBe(0)
    expect((await post(json('x'.repeat(900)))).status).toBe(200)
  })

  test.each(['gzip', 'x-gzip', 'GZIP', 'zstd', 'identity'])('may be compressed with %s', async (coding) => {
    const service = await startWithStream()
    const plain = json('y'.repeat(5000))
    const algorithm = coding === 'zstd' ? 'zstd' : 'gzip'
    const body = coding === 'identity' ? plain : await compress(algorithm, plain)
    const headers = { ...JSON_TYPE, 'content-encoding': coding }
    expect((await service.call('POST', RECORDS, { body, headers })).status).toBe(200)
    expect(await (await service.call('GET', `${RECORDS}?seq_num=0`)).json()).toMatchObject({
      records: [{ body: 'y'.repeat(5000) }],
    })
  })

  test.each(['gzip', 'zstd'] as const)('a %s bomb is rejected', async (coding) => {
    const service = await startWithStream()
    const body = await compress(coding, new TextEncoder().encode(jsonOfLength(LIMIT + 1)))
    expect(body.length).toBeLessThan(10_000)
    const headers = { ...JSON_TYPE, 'content-encoding': coding }
    expect(await errorOf(await service.call('POST', RECORDS, { body, headers }))).toMatchObject({
      status: 400,
      code: 'bad_json',
    })
    expect(await tailOf(service)).toBe(0)
  })

  test('damaged compressed data is 400', async () => {
    const service = await startWithStream()
    const headers = { ...PROTOBUF, 'content-encoding': 'gzip' }
    const response = await service.call('POST', RECORDS, { body: inputMessage(['a']), headers })
    expect(await errorOf(response)).toMatchObject({ status: 400, code: 'bad_proto' })
    expect(await tailOf(service)).toBe(0)
  })

  test.each(['br', 'deflate', 'gzip, gzip', 'nonsense'])('%s is 415 unsupported_encoding', async (coding) => {
    const service = await startWithStream()
    const headers = { 'content-encoding': coding }
    const response = await service.call('POST', RECORDS, { json: { records: [{}] }, headers })
    expect(await errorOf(response)).toEqual({
      status: 415,
      code: 'unsupported_encoding',
      message: 'the request body has an unsupported `content-encoding`; supported: gzip, zstd',
    })
    expect(response.headers.get('accept-encoding')).toBe('gzip, zstd')
    expect(await tailOf(service)).toBe(0)
  })

  test('a truncated body is 400', async () => {
    const service = await startWithStream()
    const upload = new Upload()
    const pending = service.call('POST', RECORDS, { body: upload.body, headers: JSON_TYPE })
    upload.write(json('a'))
    upload.fail(new Error('reset'))
    expect(await errorOf(await pending)).toEqual({
      status: 400,
      code: 'bad_json',
      message: 'the request body could not be read: reset',
    })
    expect(await tailOf(service)).toBe(0)
  })

  test('a body truncated by a disconnect is not reported', async () => {
    const service = await startWithStream()
    const upload = new Upload()
    const controller = new AbortController()
    const pending = service.call('POST', RECORDS, {
      body: upload.body,
      headers: JSON_TYPE,
      signal: controller.signal,
    })
    controller.abort()
    upload.fail(new Error('reset'))
    expect((await pending).status).toBe(499)
    expect(service.errors).toEqual([])
  })

  test('a complete body is accepted although the signal aborts at its end', async () => {
    const service = await startWithStream()
    // Nitro 3.0 does that, at the latest before the end of the body is read.
    for (const abortedAfter of [0, 1, 2]) {
      const atEnd = new AbortController()
      const chunks = [json('a').slice(0, 5), json('a').slice(5)]
      let pulled = 0
      const body = new ReadableStream<Uint8Array>(
        {
          pull(controller) {
            if (pulled === abortedAfter) atEnd.abort()
            const chunk = chunks[pulled++]
            if (chunk === undefined) controller.close()
            else controller.enqueue(chunk)
          },
        },
        { highWaterMark: 0 },
      )
      const response = await service.call('POST', RECORDS, { body, headers: JSON_TYPE, signal: atEnd.signal })
      expect(response.status).toBe(200)
    }
    expect(await tailOf(service)).toBe(3)
  })

  test('a body that stalls after a disconnect is abandoned', async () => {
    const service = await startWithStream()
    const upload = new Upload()
    const controller = new AbortController()
    const pending = service.call('POST', RECORDS, {
      body: upload.body,
      headers: JSON_TYPE,
      signal: controller.signal,
    })
    upload.write(json('a').slice(0, 5))
    controller.abort()
    expect((await pending).status).toBe(499)
    expect(await tailOf(service)).toBe(0)
    expect(service.errors).toEqual([])
  })

  test('an empty body with a content-length is reported as already read', async () => {
    const service = await startWithStream()
    const headers = { ...JSON_TYPE, 'content-length': '16' }
    const error = await errorOf(await service.call('POST', RECORDS, { body: '', headers }))
    expect([error.status, error.code]).toEqual([500, 'other'])
    expect(error.message).toContain('before any body parser')
  })

  test.each(['application/json', 'svcs/proto'])(
    'a body that a parser has read is reported with the remedy: %s',
    async (type) => {
      const service = await startWithStream()
      const handler = createHandler(service.hw, { auth: 'none' })
      const request = () =>
        new Request(`http://localhost${RECORDS}`, {
          method: 'POST',
          body: '{"records":[{}]}',
          headers: { 'svc-basin': BASIN, 'content-type': type },
        })
      const parsed = request()
      await parsed.json()
      const locked = request()
      locked.body!.getReader()
      for (const request of [parsed, locked]) {
        const error = await errorOf(await handler(request))
        expect([error.status, error.code]).toEqual([500, 'other'])
        expect(error.message).toContain('before any body parser')
      }
      expect(await tailOf(service)).toBe(0)
      expect(service.hw.stats().cachedStreams).toBe(1)
    },
  )
})
