import { describe, expect, test } from 'vitest'
import { StorageFailure } from '../../src/storage/errors.ts'
import { testStorage, wrapped } from '../support/index.ts'
import {
  BASIN,
  BodyReader,
  errorOf,
  parseSse,
  RECORDS,
  startWithRecords,
  startWithStream,
} from './support.ts'

const NOW = Date.UTC(2025, 0, 1)
const SSE = { accept: 'text/event-stream, application/json' }

async function start() {
  const service = await startWithRecords('a', 'b', 'c')
  const read = (query: string, headers: Record<string, string> = {}) =>
    service.call('GET', `${RECORDS}${query}`, { headers: { ...SSE, ...headers } })
  return { ...service, read }
}

describe('SSE', () => {
  test('has the documented bytes, is never compressed, and has headers against buffers of proxies', async () => {
    const { read, expectNothingOpen } = await start()
    const response = await read('?seq_num=0&count=3', { 'accept-encoding': 'gzip, zstd' })
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'content-type': 'text/event-stream',
      'cache-control': 'no-cache, no-transform',
      'x-accel-buffering': 'no',
    })
    expect(response.headers.has('content-encoding')).toBe(false)
    const records = ['a', 'b', 'c'].map((body, seq_num) => ({ seq_num, timestamp: NOW, body }))
    const tail = { seq_num: 3, timestamp: NOW }
    expect(await response.text()).toBe(
      `event: batch\nid: 2,3,27\ndata: ${JSON.stringify({ records, tail })}\n\ndata: [DONE]\n\n`,
    )
    expectNothingOpen()
  })

  test('writes records with line breaks in one line', async () => {
    const { read, stream } = await start()
    const body = 'a\r\nb\rc\n\nevent: error\ndata: x\n\n\u2028'
    await stream.append(body)
    const events = parseSse(await (await read('?seq_num=3&count=1')).text())
    expect(events.map(({ event, data }) => [event, event && JSON.parse(data).records[0].body])).toEqual([
      ['batch', body],
      [undefined, undefined],
    ])
  })

  test('follows with a ping on reaching the tail, live batches with tails, and cumulative ids', async () => {
    const { read, clock, stream, hw, expectNothingOpen } = await start()
    const reader = new BodyReader(await read('?seq_num=1'))
    await clock.settle()
    expect(hw.stats()).toMatchObject({ openReads: 1, waitingReads: 1 })
    await clock.advance('1s')
    await stream.append('é\u2028')
    await clock.settle()
    const events = parseSse(reader.text)
    expect(events.map(({ event, id }) => [event, id])).toEqual([
      ['batch', '2,2,18'],
      ['ping', undefined],
      ['batch', '3,3,31'],
    ])
    expect(JSON.parse(events[1]!.data)).toEqual({ timestamp: NOW, tail: { seq_num: 3, timestamp: NOW } })
    expect(JSON.parse(events[2]!.data)).toEqual({
      records: [{ seq_num: 3, timestamp: NOW + 1000, body: 'é\u2028' }],
      tail: { seq_num: 4, timestamp: NOW + 1000 },
    })
    await reader.cancel()
    expectNothingOpen()
  })

  test('pings again after 5 to 15 s of silence', async () => {
    const { read, clock } = await start()
    const reader = new BodyReader(await read(''))
    const pings = () => parseSse(reader.text).filter(({ event }) => event === 'ping')
    await clock.advance(4_999)
    expect(pings()).toHaveLength(1)
    await clock.advance(10_001)
    expect(pings().length).toBeGreaterThanOrEqual(2)
    await clock.advance('10m')
    const times = pings().map(({ data }) => JSON.parse(data).timestamp as number)
    const gaps = times.slice(1).map((time, i) => time - times[i]!)
    expect(gaps.length).toBeGreaterThan(40)
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(5_000)
    expect(Math.max(...gaps)).toBeLessThanOrEqual(15_000)
    await reader.cancel()
  })

  test('does not read ahead of its client', async () => {
    const { read, stream, clock, hw, expectNothingOpen } = await start()
    for (let i = 0; i < 4; i++) await stream.append(Array(1000).fill('x'))
    const response = await read('?seq_num=0&count=100000')
    const reader = response.body!.getReader()
    const { value } = await reader.read()
    const text = new TextDecoder().decode(value)
    expect(text.match(/event: /g)).toHaveLength(1)
    await reader.cancel()
    const idle = await read('')
    await clock.settle()
    expect(hw.stats()).toMatchObject({ openReads: 1, waitingReads: 0 })
    await idle.body!.cancel()
    expectNothingOpen()
  })

  test('ends with an error event when the stream is deleted', async () => {
    const { read, clock, hw, expectNothingOpen } = await start()
    const reader = new BodyReader(await read(''))
    await clock.settle()
    await hw.basin(BASIN).stream('s').delete()
    await reader.ended
    const last = parseSse(reader.text).at(-1)!
    expect(last.event).toBe('error')
    expect(JSON.parse(last.data)).toEqual({ code: 'unavailable', message: 'the stream was deleted' })
    expect(reader.text).not.toContain('[DONE]')
    expect(hw.stats()).toMatchObject({ openReads: 0, waitingReads: 0 })
    await clock.advance('1h')
    expectNothingOpen()
  })

  test('ends with an error event when the storage fails, and the cause is reported', async () => {
    let fails = false
    const failure = new StorageFailure('io', 'disk on fire', { nothingWritten: true })
    const storage = wrapped(testStorage(), {}, (real) => ({
      read: (...range) => (fails ? Promise.reject(failure) : real.read(...range)),
    }))
    const { call, hw, errors } = await startWithStream({}, { storage })
    const stream = hw.basin(BASIN).stream('s')
    for (let i = 0; i < 3; i++) await stream.append(Array(1000).fill('x'.repeat(1000)))
    const response = await call('GET', `${RECORDS}?seq_num=0`, { headers: SSE })
    fails = true
    const events = parseSse(await response.text())
    expect(events[0]!.event).toBe('batch')
    expect(events.at(-1)!.event).toBe('error')
    expect(JSON.parse(events.at(-1)!.data)).toEqual({ code: 'storage', message: 'the storage failed (io)' })
    expect(errors).toMatchObject([{ code: 'storage', cause: failure }])
    expect(hw.stats().openReads).toBe(0)
    const error = await errorOf(await call('GET', `${RECORDS}?seq_num=0`, { headers: SSE }))
    expect(error).toMatchObject({ status: 500, code: 'storage' })
    expect(hw.stats().openReads).toBe(0)
  })

  test('does not fail if the runtime cancels the body after the client has left', async () => {
    const { call, clock, expectNothingOpen } = await start()
    const controller = new AbortController()
    const response = await call('GET', RECORDS, { headers: SSE, signal: controller.signal })
    const reader = response.body!.getReader()
    await reader.read()
    const pending = reader.read()
    await clock.settle()
    controller.abort()
    await reader.cancel()
    expect(await pending).toEqual({ done: true, value: undefined })
    expectNothingOpen()
  })
})

describe.each([[], ['a', 'b', 'c']])('SSE at the tail of %j', (...records) => {
  async function startAtTail(headers: Record<string, string> = {}) {
    const service = await startWithStream()
    const stream = service.hw.basin(BASIN).stream('s')
    if (records.length > 0) await stream.append(records)
    const read = (query: string, more: Record<string, string> = {}) =>
      service.call('GET', `${RECORDS}${query}`, { headers: { ...SSE, ...more } })
    const reader = new BodyReader(await read('', headers))
    await service.clock.settle()
    return { ...service, stream, read, reader }
  }

  test('begins with an id that is no event, then the ping without one', async () => {
    const { clock, reader, stream } = await startAtTail()
    const [, ping] = reader.text.split('\n\n')
    expect(reader.text).toBe(`id: ${records.length - 1},0,0\n\n${ping}\n\n`)
    expect(ping).toMatch(/^event: ping\ndata: [^\n]*$/)
    await stream.append('d')
    await clock.advance('20s')
    const ids = parseSse(reader.text).map(({ event, id }) => [event, id])
    expect(ids.slice(2, 4)).toEqual([
      ['batch', `${records.length},1,9`],
      ['ping', undefined],
    ])
    await reader.cancel()
  })

  test('resumes with that id where the lost response would have gone on', async () => {
    const { reader, read, stream } = await startAtTail()
    await reader.cancel()
    await stream.append(['meanwhile', 'and more'])
    const lastEventId = /^id: (.*)$/m.exec(reader.text)![1]!
    const resumed = await (await read('?count=2', { 'last-event-id': lastEventId })).text()
    const [batch] = parseSse(resumed)
    expect(JSON.parse(batch!.data).records.map(({ body }: { body: string }) => body)).toEqual([
      'meanwhile',
      'and more',
    ])
  })

  test('leaves a client that has resumed the id that it has', async () => {
    const { reader } = await startAtTail({ 'last-event-id': `${records.length - 1},0,0` })
    expect(reader.text).toMatch(/^event: ping/)
    expect(reader.text).not.toMatch(/^id:/m)
    await reader.cancel()
  })
})

describe('Last-Event-ID', () => {
  test.each([
    ['?timestamp=0&count=3', '0,1,9', ['2,2,18', 'end']],
    ['?seq_num=0&count=2', '0,1,9', ['1,1,9', 'end']],
    ['?tail_offset=1&bytes=27', '0,1,18', ['1,1,9', 'end']],
    ['?seq_num=0&count=2', '1,2,18', ['end']],
  ])(
    '%s continues after the event %s with the remaining bounds, whatever the start',
    async (query, id, ids) => {
      const { read } = await start()
      const events = parseSse(await (await read(query, { 'last-event-id': id })).text())
      expect(events.map(({ event, id }) => id ?? event ?? 'end')).toEqual(ids)
    },
  )

  test('the query is validated first, except for the start that it replaces', async () => {
    const { read } = await start()
    const id = { 'last-event-id': '0,0,0' }
    expect((await errorOf(await read('?seq_num=0&timestamp=0', id))).code).toBe('invalid')
    expect((await read(`?timestamp=5&until=5`, id)).status).toBe(200)
  })
})
