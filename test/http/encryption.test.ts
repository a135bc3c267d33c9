import { describe, expect, test } from 'vitest'
import { inputFrame } from './inputs.ts'
import {
  BASIN,
  BodyReader,
  bytesOf,
  errorOf,
  framesOf,
  parseSse,
  RECORDS,
  readBatchOf,
  startService,
  tailOf,
  Upload,
} from './support.ts'

const SESSION = { 'content-type': 'svcs/proto', accept: 'application/protobuf' }
const KEY = btoa('k'.repeat(32))
const OTHER = btoa('o'.repeat(32))
const keyed = (key: string) => ({ 'svc-encryption-key': key })

async function start() {
  const service = await startService()
  const config = { stream_cipher: 'aes-256-gcm', create_stream_on_append: true }
  expect((await service.call('PUT', `/v1/basins/${BASIN}`, { json: { config } })).status).toBe(201)
  return service
}

describe('records of an encrypted basin', () => {
  test('are appended and read with the key, in every form', async () => {
    const { call, clock } = await start()
    const records = [{ body: 'hello', headers: [['k', 'v']] }, { body: 'again' }]
    const append = await call('POST', RECORDS, { headers: keyed(KEY), json: { records } })
    expect(append.status).toBe(200)
    const upload = new Upload()
    const session = await call('POST', RECORDS, { body: upload.body, headers: { ...keyed(KEY), ...SESSION } })
    upload.write(inputFrame(['by frame']))
    upload.end()
    await bytesOf(session)

    const unary = await call('GET', `${RECORDS}?seq_num=0`, { headers: keyed(KEY) })
    expect((await unary.json()).records).toMatchObject([
      { seq_num: 0, body: 'hello', headers: [['k', 'v']] },
      { seq_num: 1, body: 'again' },
      { seq_num: 2, body: 'by frame' },
    ])
    const binary = await call('GET', `${RECORDS}?seq_num=1&count=2`, {
      headers: { ...keyed(KEY), ...SESSION },
    })
    const frames = await framesOf(await bytesOf(binary))
    const bodies = (await Promise.all(frames.map(readBatchOf))).flatMap((batch) => batch.bodies)
    expect(bodies).toEqual(['again', 'by frame'])

    const live = await call('GET', RECORDS, { headers: { ...keyed(KEY), accept: 'text/event-stream' } })
    const reader = new BodyReader(live)
    await clock.settle()
    await call('POST', RECORDS, { headers: keyed(KEY), json: { records: [{ body: 'live' }] } })
    await expect.poll(() => parseSse(reader.text).find(({ event }) => event === 'batch')).toBeDefined()
    const batch = parseSse(reader.text).find(({ event }) => event === 'batch')!
    expect(JSON.parse(batch.data)).toMatchObject({
      records: [{ seq_num: 3, body: 'live' }],
      tail: { seq_num: 4 },
    })
    await reader.cancel()
    expect((await call('GET', `${RECORDS}/tail`)).status).toBe(200)
  })

  const wrong: [string, Record<string, string>, string][] = [
    ['no key', {}, "missing encryption key for stream cipher 'aes-256-gcm'"],
    ['no base64', keyed('k'.repeat(43)), 'invalid base64'],
    ['a key of 31 bytes', keyed(btoa('k'.repeat(31))), 'invalid encryption key length'],
    ['an empty key', keyed(''), 'out of range'],
    ['a key of 45 characters', keyed('A'.repeat(45)), 'out of range'],
  ]
  test.each(wrong)('%s is rejected before anything is stored or read', async (_, headers, message) => {
    const service = await start()
    const { call } = service
    const json = { records: [{ body: 'secret' }] }
    await call('POST', RECORDS, { headers: keyed(KEY), json })
    const attempts = [
      call('POST', RECORDS, { headers, json }),
      call('POST', RECORDS, { headers: { ...headers, ...SESSION }, body: inputFrame(['x']) }),
      call('GET', `${RECORDS}?seq_num=0`, { headers }),
      // Before 416 and 412 as well.
      call('GET', `${RECORDS}?seq_num=99`, { headers }),
      call('POST', RECORDS, { headers, json: { ...json, match_seq_num: 99 } }),
      call('GET', `${RECORDS}?seq_num=0`, { headers: { ...headers, accept: 'text/event-stream' } }),
      call('GET', `${RECORDS}?seq_num=0`, { headers: { ...headers, ...SESSION } }),
    ]
    for (const attempt of attempts) {
      const error = await errorOf(await attempt)
      expect(error).toMatchObject({ status: 400, code: 'bad_header' })
      expect(error.message).toContain(message)
      for (const key of Object.values(headers)) {
        if (key.trim() !== '') expect(error.message).not.toContain(key)
      }
    }
    expect(await tailOf(service)).toBe(1)
    expect(service.errors).toEqual([])
  })

  test('every kind of read reports a wrong key', async () => {
    const { call, errors } = await start()
    await call('POST', RECORDS, { headers: keyed(KEY), json: { records: [{ body: 'secret' }] } })
    const read = (headers = {}) =>
      call('GET', `${RECORDS}?seq_num=0&count=1`, { headers: { ...keyed(OTHER), ...headers } })
    const expected = { code: 'decryption_failed', message: 'record decryption failed' }
    expect(await errorOf(await read())).toEqual({ status: 400, ...expected })
    const events = parseSse(await (await read({ accept: 'text/event-stream' })).text())
    expect(events.map(({ event }) => event)).toEqual(['error'])
    expect(JSON.parse(events[0]!.data)).toEqual(expected)
    const [frame] = await framesOf(await bytesOf(await read(SESSION)))
    expect(frame).toMatchObject({ kind: 'terminal', status: 400 })
    expect(errors).toEqual([])
  })
})

test('a stream without a cipher ignores any key', async () => {
  const service = await startService()
  await service.hw.createBasin(BASIN, { createStreamOnAppend: true })
  const headers = keyed('no base64!')
  const json = { records: [{ body: 'plain' }] }
  expect((await service.call('POST', RECORDS, { headers, json })).status).toBe(200)
  expect((await service.call('GET', `${RECORDS}?seq_num=0`, { headers })).status).toBe(200)
})
