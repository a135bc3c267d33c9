// @module-tag slow

import { describe, expect, it } from 'vitest'
import { APPEND_BYTES_MAX } from '../../adapters/durable-streams/messages.ts'
import type { RecordInput } from '../../src/index.ts'
import { BASIN, type Call, startService } from './support.ts'

const MIB = 1_048_576
const KEY = { 'svc-encryption-key': Buffer.alloc(32, 7).toString('base64') }

/**
 * Text of a number of bytes, of which no piece looks like another, and some characters have several bytes.
 */
function textOf(bytes: number): string {
  let text = ''
  for (let index = 0; text.length < bytes / 2; index++) text += `${index} é `
  return text
}

const TYPES: readonly (readonly [string, (text: string) => string])[] = [
  ['application/octet-stream', (text) => text],
  ['text/plain', (text) => text],
  ['application/json', (text) => JSON.stringify(text)],
]

/** What a client that follows the offsets receives: the messages of each response. */
async function pagesOf(call: Call, type: string, headers = {}): Promise<string[]> {
  const pages: string[] = []
  for (let offset = '-1'; ; ) {
    const response = await call('GET', `s?offset=${offset}`, { headers })
    expect(response.status).toBe(200)
    const text = await response.text()
    pages.push(type === 'application/json' ? JSON.parse(text).join('') : text)
    offset = response.headers.get('stream-next-offset')!
    if (response.headers.get('stream-up-to-date') === 'true') return pages
  }
}

describe.each(TYPES)('a message of %s that exceeds a record', (type, encode) => {
  it.each([
    ['plain', {}],
    ['encrypted', KEY],
  ])('is appended atomically to a stream that is %s, and is in one response', async (mode, key) => {
    const { hw, call } = await startService()
    if (mode === 'encrypted') await hw.createBasin(BASIN, { streamCipher: 'aes-256-gcm' })
    const headers = { ...key, 'content-type': type }
    await call('PUT', 's', { headers })
    // The first response would end within the large message.
    const messages = [textOf(700_000), textOf(2.5 * MIB), 'small', textOf(MIB), 'last']
    for (const message of messages) {
      expect((await call('POST', 's', { headers, body: encode(message) })).status).toBe(204)
    }
    const pages = await pagesOf(call, type, key)
    expect(pages.join('') === messages.join('')).toBe(true)
    const ends = messages.map((_, index) => messages.slice(0, index + 1).join('').length)
    let length = 0
    for (const page of pages) {
      length += page.length
      expect(ends).toContain(length)
    }
  })

  it.each(['long-poll', 'sse'])('reaches a client that follows by %s in one piece', async (live) => {
    const { clock, call } = await startService()
    const headers = { 'content-type': type }
    await call('PUT', 's', { headers })
    const message = textOf(2.5 * MIB)
    const polled = call('GET', `s?offset=-1&live=${live}`)
    await clock.settle()
    if (live === 'long-poll') {
      await call('POST', 's', { headers, body: encode(message) })
      const text = await (await polled).text()
      expect((type === 'application/json' ? JSON.parse(text)[0] : text) === message).toBe(true)
      return
    }
    const response = await polled
    const following = dataEvents(response, 2)
    await clock.settle()
    await call('POST', 's', { headers, body: encode(message) })
    await call('POST', 's', { headers, body: encode('small') })
    const events = await following
    const isBase64 = response.headers.get('stream-sse-data-encoding') === 'base64'
    const texts = events.map((event) => (isBase64 ? Buffer.from(event, 'base64').toString() : event))
    const received = texts.map((text) => (type === 'application/json' ? JSON.parse(text)[0] : text))
    expect([received.length, received[0] === message, received[1]]).toEqual([2, true, 'small'])
  })
})

/** The data of the first events of a response. */
async function dataEvents(response: Response, count: number): Promise<string[]> {
  const decoder = new TextDecoder()
  let text = ''
  for await (const chunk of response.body!) {
    text += decoder.decode(chunk, { stream: true })
    const events = text.split('\n\n').slice(0, -1)
    const data = events.filter((event) => event.startsWith('event: data\n'))
    if (data.length >= count) return data.map((event) => event.slice('event: data\ndata:'.length))
  }
  throw new Error('the response has ended')
}

describe('an append', () => {
  const BYTES = { 'content-type': 'application/octet-stream' }

  it('of several records names the part in each, for clients of other protocols', async () => {
    const { hw, call } = await startService()
    await call('PUT', 's', { headers: BYTES })
    await call('POST', 's', { headers: BYTES, body: new Uint8Array(2.5 * MIB) })
    const records = await hw.basin(BASIN).stream('s').read().toArray()
    expect(records.map(({ headers }) => headers)).toEqual([
      [['durable-streams-part', '1/3']],
      [['durable-streams-part', '2/3']],
      [['durable-streams-part', '3/3']],
    ])
  })

  it('has up to 16 MiB, and is stored by a producer once', async () => {
    const { call } = await startService()
    await call('PUT', 's', { headers: BYTES })
    const body = new Uint8Array(APPEND_BYTES_MAX).fill(7)
    const producer = { ...BYTES, 'producer-id': 'p', 'producer-epoch': '0', 'producer-seq': '0' }
    const statuses = []
    for (let i = 0; i < 2; i++) statuses.push((await call('POST', 's', { headers: producer, body })).status)
    expect(statuses).toEqual([200, 204])
    const response = await call('GET', 's')
    expect(Buffer.compare(Buffer.from(await response.arrayBuffer()), body)).toBe(0)
    const tooLong = await call('POST', 's', { headers: BYTES, body: new Uint8Array(APPEND_BYTES_MAX + 1) })
    expect(tooLong.status).toBe(413)
    expect((await call('HEAD', 's')).headers.get('stream-next-offset')).toBe(
      response.headers.get('stream-next-offset'),
    )
  })

  it('that the memory limits of the engine do not admit is 413', async () => {
    const { call } = await startService({}, { limits: { appendInFlightBytes: 2 * MIB } })
    await call('PUT', 's', { headers: BYTES })
    const bodies = [2.5 * MIB, 1.5 * MIB].map((bytes) => new Uint8Array(bytes))
    const statuses = []
    for (const body of bodies) {
      statuses.push((await call('PUT', 'new', { headers: BYTES, body })).status)
      statuses.push((await call('POST', 's', { headers: BYTES, body })).status)
    }
    expect(statuses).toEqual([413, 413, 201, 204])
  })

  it.each(TYPES)('that creates a stream of %s may have as much as any other', async (type, encode) => {
    const { call } = await startService()
    const headers = { 'content-type': type }
    const text = textOf(3 * MIB)
    const body = encode(text)
    const created = await call('PUT', 's', { headers, body })
    expect(created.status).toBe(201)
    expect((await pagesOf(call, type)).join('') === text).toBe(true)
    const head = await call('HEAD', 's')
    expect(head.headers.get('stream-next-offset')).toBe(created.headers.get('stream-next-offset'))
    const tooLong = await call('PUT', 'other', { headers, body: new Uint8Array(APPEND_BYTES_MAX + 1) })
    expect([tooLong.status, (await call('HEAD', 'other')).status]).toEqual([413, 404])
  })

  it('that is refused stores none of its records', async () => {
    const { hw, call } = await startService()
    await call('PUT', 's', { headers: BYTES })
    await hw.basin(BASIN).stream('s').append('before')
    expect((await call('POST', 's', { headers: { ...BYTES, 'stream-seq': 'b' }, body: 'x' })).status).toBe(
      204,
    )
    const body = new Uint8Array(3 * MIB)
    expect((await call('POST', 's', { headers: { ...BYTES, 'stream-seq': 'a' }, body })).status).toBe(409)
    expect(await (await call('GET', 's')).text()).toBe('beforex')
  })
})

describe('the memory of responses with large messages', () => {
  const headers = { 'content-type': 'application/octet-stream' }

  it('counts as pending bodies until they are sent or their client leaves', async () => {
    const service = await startService()
    const call = service.with({ limits: { pendingBodyBytes: 2 * MIB } })
    await call('PUT', 's', { headers })
    await call('POST', 's', { headers, body: new Uint8Array(3 * MIB) })
    const first = await call('GET', 's')
    expect((await call('GET', 's')).status).toBe(429)
    await first.body!.cancel()
    expect((await (await call('GET', 's')).arrayBuffer()).byteLength).toBe(3 * MIB)
    expect((await call('GET', 's')).status).toBe(200)
  })
})

/** A record with a number of a part, or without one. */
function recordOf(part: string, body: string): RecordInput {
  return { body, headers: part === '' ? [] : [['durable-streams-part', part]] }
}

/** The numbers of the parts that records claim to be. Their messages are `f` and `g`. */
const FORGED: readonly (readonly [title: string, ...parts: string[]])[] = [
  ['is the first of a message that does not come', '1/3'],
  ['is a first part again', '1/2', '1/2'],
  ['states another count than the one before', '1/2', '2/3'],
  ['is one of several without the last', '1/3', '2/3'],
  ['skips a number', '1/4', '3/4'],
  ['has no part before it', '', '2/3'],
]

/** Honest messages: one in parts and one without. */
const HONEST = [recordOf('1/2', '"a'), recordOf('2/2', 'b"'), recordOf('', '"c"')]
const HONEST_MESSAGES = ['ab', 'c']

describe.each(FORGED)('a record that claims to be a part but %s', (_, ...parts) => {
  const headers = { 'content-type': 'application/json' }
  const expected = ['f', 'g'].slice(0, parts.length)
  const FILL = 1000
  const isHonest = (message: unknown) => message !== 0 && !expected.includes(String(message))

  async function startForged(fill: number) {
    const service = await startService()
    const created = await service.call('PUT', 's', { headers })
    const stream = service.hw.basin(BASIN).stream('s')
    if (fill > 0) await stream.append(Array(fill).fill('0'))
    for (const [index, part] of parts.entries()) await stream.append([recordOf(part, `"${expected[index]}"`)])
    await stream.append(HONEST)
    return { ...service, beginning: created.headers.get('stream-next-offset')! }
  }

  it('is a message of its own', async () => {
    const { call } = await startForged(0)
    expect(await (await call('GET', 's')).json()).toEqual([...expected, ...HONEST_MESSAGES])
  })

  it.each([1, 2, 3])('takes no message along when a response ends %i records after filler', async (room) => {
    const { clock, call } = await startForged(FILL - room)
    const messages: unknown[] = []
    for (let offset = '-1', isLast = false; !isLast; ) {
      const response = await call('GET', `s?offset=${offset}`)
      messages.push(...((await response.json()) as unknown[]))
      offset = response.headers.get('stream-next-offset')!
      isLast = response.headers.get('stream-up-to-date') === 'true'
    }
    expect(messages.filter(isHonest)).toEqual(HONEST_MESSAGES)
    const following = dataEvents(await call('GET', 's?offset=-1&live=sse'), 2)
    await clock.settle()
    const events = (await following).flatMap((event) => JSON.parse(event) as unknown[])
    expect(events.filter(isHonest)).toEqual(HONEST_MESSAGES)
  })

  it('counts as a message where a fork ends', async () => {
    const { call, beginning } = await startForged(0)
    const all = [...expected, ...HONEST_MESSAGES]
    for (let count = 1; count <= all.length; count++) {
      const fork = {
        'stream-forked-from': '/v1/stream/s',
        'stream-fork-offset': beginning,
        'stream-fork-sub-offset': String(count),
      }
      expect((await call('PUT', `fork-${count}`, { headers: { ...headers, ...fork } })).status).toBe(201)
      expect(await (await call('GET', `fork-${count}`)).json()).toEqual(all.slice(0, count))
    }
  })
})

describe('an event stream of records that each claim to begin a message', () => {
  it.each(['1/2', '1/17'])('delivers each at once and holds none (%s)', async (part) => {
    const service = await startService()
    const call = service.with({ limits: { pendingBodyBytes: 2 * MIB } })
    const headers = { 'content-type': 'text/plain' }
    await call('PUT', 's', { headers })
    await call('PUT', 'other', { headers })
    const stream = service.hw.basin(BASIN).stream('s')
    const following = dataEvents(await call('GET', 's?offset=-1&live=sse'), 20)
    for (let index = 0; index < 20; index++) {
      await stream.append([recordOf(part, String(index).padEnd(800_000, '.'))])
      await service.clock.settle()
      const body = 'x'.repeat(100_000)
      expect((await call('POST', 'other', { headers, body })).status).toBe(204)
    }
    const received = (await following).map((event) => Number.parseInt(event, 10))
    expect(received).toEqual(Array.from({ length: 20 }, (_, index) => index))
  })
})

describe('a record that another protocol calls a part of a message', () => {
  it('hides no other record', async () => {
    const { hw, call } = await startService()
    await call('PUT', 's', { headers: { 'content-type': 'text/plain' } })
    const stream = hw.basin(BASIN).stream('s')
    const parts = [recordOf('1/9', 'a'), recordOf('3/2', 'b'), recordOf('1/99', 'c')]
    await stream.append([...parts, 'd', recordOf('1/3', 'e')])
    expect(await (await call('GET', 's')).text()).toBe('abcde')
    expect(await dataEvents(await call('GET', 's?offset=-1&live=sse'), 1)).toEqual(['abcde'])
  })

  it.each([
    ['alone', ['2/3']],
    ['with the next one', ['2/3', '3/3']],
    ['before a whole message', ['2/2', '1/2', '2/2']],
  ])('is a message of its own where a response begins: %s', async (_, parts) => {
    const { hw, call } = await startService()
    const headers = { 'content-type': 'application/json' }
    const created = await call('PUT', 's', { headers, body: '["first"]' })
    const stream = hw.basin(BASIN).stream('s')
    await stream.append(parts.map((part, index) => recordOf(part, String(index + 1))))
    const messages = parts.length === 3 ? [1, 23] : parts.map((_, index) => index + 1)
    const offset = created.headers.get('stream-next-offset')
    expect(await (await call('GET', `s?offset=${offset}`)).json()).toEqual(messages)
    const following = dataEvents(await call('GET', `s?offset=${offset}&live=sse`), 1)
    expect(JSON.parse((await following)[0]!)).toEqual(messages)
    await stream.trim(1)
    expect(await (await call('GET', 's')).json()).toEqual(messages)
  })

  it('is a message of its own if the beginning of its message was trimmed', async () => {
    const { hw, call } = await startService()
    const headers = { 'content-type': 'application/json' }
    await call('PUT', 's', { headers })
    const text = 'x'.repeat(1.5 * MIB)
    await call('POST', 's', { headers, body: `["${text}",2]` })
    await hw.basin(BASIN).stream('s').trim(1)
    const messages = (await (await call('GET', 's')).json()) as unknown[]
    expect([messages.length, `"${text}"`.endsWith(String(messages[0])), messages[1]]).toEqual([2, true, 2])
  })
})
