import { describe, expect, test } from 'vitest'
import { createHandler } from '../../adapters/http/index.ts'
import { compress } from '../../src/wire/compression.ts'
import { BASIN, errorOf, RECORDS, startWithStream, tailOf, Upload } from './support.ts'

const JSON_TYPE = { 'content-type': 'application/json' }
const LIMIT = 2_097_152
const encode = (text: string) => new TextEncoder().encode(text)
const appendOf = (body: string) => encode(JSON.stringify({ records: [{ body }] }))

/** A valid append of so many bytes of JSON. */
const ofLength = (length: number) => encode(`{"records":[{}]${' '.repeat(length - 16)}}`)

describe('a request body', () => {
  test.each([
    ['identity', 1],
    ['gzip', 1],
    ['x-gzip', 7],
    ['GZIP', 1_000],
    ['zstd', 1],
  ] as const)('is read as %s in chunks of %i bytes', async (coding, length) => {
    const service = await startWithStream()
    const text = Array.from({ length: 100 }, (_, i) => `${i * i}`).join(' ')
    const plain = appendOf(text)
    const algorithm = coding === 'zstd' ? 'zstd' : 'gzip'
    const sent = coding === 'identity' ? plain : await compress(algorithm, plain)
    const upload = new Upload()
    for (let at = 0; at < sent.length; at += length)
      upload.write(sent.slice(at, at + length), new Uint8Array(0))
    upload.end()
    const headers = { ...JSON_TYPE, 'content-encoding': coding }
    expect((await service.call('POST', RECORDS, { body: upload.body, headers })).status).toBe(200)
    const read = await service.call('GET', `${RECORDS}?seq_num=0`)
    expect(await read.json()).toMatchObject({ records: [{ body: text }] })
  })

  test.each(['identity', 'gzip', 'zstd'] as const)('may have 2 MiB, and no byte more: %s', async (coding) => {
    const service = await startWithStream()
    const append = async (length: number) => {
      const body = coding === 'identity' ? ofLength(length) : await compress(coding, ofLength(length))
      return service.call('POST', RECORDS, { body, headers: { ...JSON_TYPE, 'content-encoding': coding } })
    }
    expect(await errorOf(await append(LIMIT + 1))).toMatchObject({ status: 400, code: 'bad_json' })
    expect(await tailOf(service)).toBe(0)
    expect((await append(LIMIT)).status).toBe(200)
  })

  test('an endless body is cancelled when it exceeds the limit', async () => {
    const service = await startWithStream()
    let chunks = 0
    let isCancelled = false
    const body = new ReadableStream<Uint8Array>(
      {
        pull: (controller) => {
          chunks++
          controller.enqueue(new Uint8Array(65_536))
        },
        cancel: () => {
          isCancelled = true
        },
      },
      { highWaterMark: 0 },
    )
    const headers = { 'content-type': 'application/protobuf' }
    const response = await service.call('POST', RECORDS, { body, headers })
    expect(await errorOf(response)).toMatchObject({ status: 400, code: 'bad_proto' })
    expect([isCancelled, chunks]).toEqual([true, LIMIT / 65_536 + 1])
    expect(await tailOf(service)).toBe(0)
  })

  test('has a lower limit on request, before and after decompression', async () => {
    const service = await startWithStream()
    const call = service.with({ limits: { bodyBytes: 1000 } })
    const post = (body: Uint8Array, headers: Record<string, string> = {}) =>
      call('POST', RECORDS, { body, headers: { ...JSON_TYPE, ...headers } })
    const large = appendOf('x'.repeat(1000))
    expect((await errorOf(await post(large))).code).toBe('bad_json')
    const coded = await post(await compress('gzip', large), { 'content-encoding': 'gzip' })
    expect((await errorOf(coded)).code).toBe('bad_json')
    expect(await tailOf(service)).toBe(0)
    expect((await post(appendOf('x'.repeat(900)))).status).toBe(200)
  })

  test('is read as a whole in a runtime without request streams, or absent', async () => {
    const { hw } = await startWithStream()
    const handler = createHandler(hw, { auth: 'none' })
    const call = async (method: string, path: string, body?: Uint8Array) => {
      const headers = { 'svc-basin': BASIN, ...JSON_TYPE }
      const init: RequestInit = { method, headers, ...(body && { body: body as BodyInit }) }
      const request = new Request(`http://localhost${path}`, init)
      return (await handler(Object.defineProperty(request, 'body', { value: undefined }))).status
    }
    expect(await call('POST', RECORDS, ofLength(LIMIT))).toBe(200)
    expect(await call('POST', RECORDS, ofLength(LIMIT + 1))).toBe(400)
    expect(await call('PUT', '/v1/streams/another')).toBe(201)
    expect(await call('GET', `${RECORDS}/tail`)).toBe(200)
  })

  test.each([
    ['that breaks off is 400, with the reason', false, 'the request body could not be read: reset'],
    ['that breaks off because the client leaves is not reported', true, undefined],
    ['that stalls when the client leaves is abandoned', true, undefined],
  ])('%s', { tags: ['slow'] }, async (title, isLeaving, message) => {
    const service = await startWithStream()
    const upload = new Upload()
    const leaving = new AbortController()
    const { signal } = leaving
    const pending = service.call('POST', RECORDS, { body: upload.body, headers: JSON_TYPE, signal })
    upload.write(appendOf('a').slice(0, 5))
    if (isLeaving) leaving.abort()
    if (!title.includes('stalls')) upload.fail(new Error('reset'))
    const response = await pending
    expect(response.status).toBe(isLeaving ? 499 : 400)
    if (message !== undefined) expect(await errorOf(response)).toMatchObject({ code: 'bad_json', message })
    expect(await tailOf(service)).toBe(0)
    expect(service.errors).toEqual([])
  })

  // Nitro 3.0 does that, at the latest before the end of the body is read.
  test.each([0, 1, 2])(
    'is accepted although the signal aborts at its end, after %i chunks',
    async (after) => {
      const service = await startWithStream()
      const atEnd = new AbortController()
      const chunks = [appendOf('a').slice(0, 5), appendOf('a').slice(5)]
      let pulled = 0
      const body = new ReadableStream<Uint8Array>(
        {
          pull(controller) {
            if (pulled === after) atEnd.abort()
            const chunk = chunks[pulled++]
            if (chunk === undefined) controller.close()
            else controller.enqueue(chunk)
          },
        },
        { highWaterMark: 0 },
      )
      const response = await service.call('POST', RECORDS, { body, headers: JSON_TYPE, signal: atEnd.signal })
      expect(response.status).toBe(200)
      expect(await tailOf(service)).toBe(1)
    },
  )

  test.each(['application/json', 'svcs/proto'])(
    'is reported with the remedy if a parser has read it: %s',
    async (type) => {
      const service = await startWithStream()
      const handler = createHandler(service.hw, { auth: 'none', onError: () => {} })
      const request = (body: string, more = {}) =>
        new Request(`http://localhost${RECORDS}`, {
          method: 'POST',
          body,
          headers: { 'svc-basin': BASIN, 'content-type': type, ...more },
        })
      const parsed = request('{"records":[{}]}')
      await parsed.json()
      const locked = request('{"records":[{}]}')
      locked.body!.getReader()
      const emptied = type === 'application/json' ? [request('', { 'content-length': '16' })] : []
      for (const sent of [parsed, locked, ...emptied]) {
        const error = await errorOf(await handler(sent))
        expect([error.status, error.code]).toEqual([500, 'other'])
        expect(error.message).toContain('before any body parser')
      }
      expect(await tailOf(service)).toBe(0)
    },
  )
})
