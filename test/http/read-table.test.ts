import { describe, expect, test } from 'vitest'
import {
  BASIN,
  BodyReader,
  framesOf,
  parseSse,
  RECORDS,
  readBatchOf,
  type Service,
  startWithStream,
} from './support.ts'

/** The 416 table (docs/protocol.md "Out of range"), over every kind of read. */
type Stream = 'empty' | 'three' | 'just trimmed' | 'trimmed' | 'expired'
/** How many records there are, or 416; without waiting and with. */
type Row = readonly [stream: Stream, query: string, now: number | 416, waiting: number | 416]

// A row for each outcome; test/core/read-plan.test.ts has all of the table.
const ROWS: readonly Row[] = [
  ['three', 'seq_num=0', 3, 3],
  ['three', 'seq_num=3', 416, 0],
  ['three', 'seq_num=4', 416, 416],
  ['three', 'seq_num=4&clamp=true', 416, 0],
  ['three', '', 416, 0],
  ['three', 'tail_offset=2', 2, 2],
  ['three', 'timestamp=150', 2, 2],
  ['three', 'timestamp=301', 416, 416],
  ['empty', 'seq_num=0', 416, 0],
  ['just trimmed', 'seq_num=0', 4, 4],
  ['just trimmed', 'tail_offset=1', 1, 1],
  ['just trimmed', 'seq_num=4', 416, 0],
  ['trimmed', 'seq_num=0', 416, 0],
  ['trimmed', 'seq_num=5', 416, 416],
  ['expired', 'timestamp=0', 416, 0],
]

const FORMS = {
  JSON: {},
  protobuf: { accept: 'application/protobuf' },
  SSE: { accept: 'text/event-stream' },
  session: { 'content-type': 'svcs/proto' },
}
type Form = keyof typeof FORMS

async function start(kind: Stream): Promise<Service> {
  const service = await startWithStream()
  const basin = service.hw.basin(BASIN)
  const stream = basin.stream('s')
  if (kind !== 'empty') {
    if (kind === 'expired') {
      await basin.stream('s').reconfigure({ retentionPolicy: { ageSeconds: 1 } })
    }
    await stream.append([100, 200, 300].map((timestamp) => ({ body: 'x', timestamp })))
    // All of these have a tail of 4.
    if (kind === 'expired') await stream.append({ body: 'x', timestamp: 300 })
    if (kind === 'just trimmed' || kind === 'trimmed') await stream.trim(Number.MAX_SAFE_INTEGER)
    if (kind === 'trimmed') await service.clock.advance('10s')
    if (kind === 'expired') await service.clock.advance('2s')
  }
  return service
}

async function countIn(
  form: Form,
  bytes: Uint8Array,
): Promise<{ records: number; heartbeats: number; error: boolean }> {
  if (form === 'session') {
    const batches = await Promise.all((await framesOf(bytes)).map(readBatchOf))
    const heartbeats = batches.filter(({ seqNums }) => seqNums.length === 0).length
    return { records: batches.flatMap(({ seqNums }) => seqNums).length, heartbeats, error: false }
  }
  const events = parseSse(new TextDecoder().decode(bytes))
  const batches = events.filter(({ event }) => event === 'batch')
  return {
    records: batches.flatMap(({ data }) => JSON.parse(data).records).length,
    heartbeats: events.filter(({ event }) => event === 'ping').length,
    error: events.some(({ event }) => event === 'error'),
  }
}

const path = (...parameters: string[]) => `${RECORDS}?${parameters.filter((part) => part !== '').join('&')}`

async function outcome(form: Form, response: Response, service: Service) {
  if (response.status !== 200) {
    const { tail } = (await response.json()) as { tail: { seq_num: number } }
    expect(tail.seq_num).toBe((await service.hw.basin(BASIN).stream('s').checkTail()).seqNum)
    return response.status
  }
  if (form === 'JSON') return ((await response.json()) as { records: unknown[] }).records.length
  const reader = new BodyReader(response)
  await service.clock.advance('6s')
  await reader.ended
  if (form === 'protobuf') return [...(await readAll(reader.bytes))].length
  const { records, error } = await countIn(form, reader.bytes)
  expect(error).toBe(false)
  return records
}

async function readAll(bytes: Uint8Array) {
  const { seqNums } = await readBatchOf({
    kind: 'message',
    compression: undefined,
    reconnectAdvised: false,
    payload: bytes,
  })
  return seqNums
}

function expectNothingOpen({ hw }: Service): void {
  expect(hw.stats()).toMatchObject({ openReads: 0, waitingReads: 0 })
}

describe.each(Object.keys(FORMS) as Form[])('%s', (form) => {
  const headers = FORMS[form]

  test.each(ROWS)('without waiting: %s stream, %s → %s', async (stream, query, now) => {
    const service = await start(stream)
    expect(
      await outcome(form, await service.call('GET', path(query, 'count=100'), { headers }), service),
    ).toBe(now)
    const explicit = await service.call('GET', path(query, 'count=100', 'wait=0'), { headers })
    expect(await outcome(form, explicit, service)).toBe(now)
    expectNothingOpen(service)
  })

  test.each(ROWS)('waiting: %s stream, %s → %s now, else %s', async (stream, query, _, waiting) => {
    const service = await start(stream)
    const pending = service.call('GET', path(query, 'count=100', 'wait=5'), { headers })
    await service.clock.advance('6s')
    expect(await outcome(form, await pending, service)).toBe(waiting)
    expectNothingOpen(service)
  })
})

describe.each(['SSE', 'session'] as const)('unbounded %s', (form) => {
  const headers = FORMS[form]

  test.each(ROWS)('follows: %s stream, %s → %s now, else %s', async (stream, query, _, waiting) => {
    const service = await start(stream)
    const response = await service.call('GET', path(query), { headers })
    expect(response.status).toBe(waiting === 416 ? 416 : 200)
    if (waiting === 416) return
    const reader = new BodyReader(response)
    await service.clock.settle()
    expect(await countIn(form, reader.bytes)).toEqual({ records: waiting, heartbeats: 1, error: false })
    await service.hw.basin(BASIN).stream('s').append('later')
    await service.clock.settle()
    expect(await countIn(form, reader.bytes)).toEqual({ records: waiting + 1, heartbeats: 1, error: false })
    await reader.cancel()
    expectNothingOpen(service)
  })

  test.each(ROWS)('with wait=0: %s stream, %s → %s', async (stream, query, now) => {
    const service = await start(stream)
    const response = await service.call('GET', path(query, 'wait=0'), { headers })
    expect(await outcome(form, response, service)).toBe(now)
    expectNothingOpen(service)
  })

  test.each([
    ['three', '', 200],
    ['three', 'seq_num=3', 200],
    ['three', 'seq_num=0', 200],
    ['empty', '', 200],
    ['three', 'seq_num=4', 416],
    ['three', 'seq_num=3&count=1', 416],
    ['trimmed', 'seq_num=0', 200],
    ['trimmed', 'seq_num=0&count=1', 200],
    ['trimmed', 'seq_num=4', 200],
    ['trimmed', 'seq_num=4&count=1', 416],
    ['expired', 'timestamp=0', 200],
  ] as const)('with wait=0 and the prefix s2: %s stream, %s → %s', async (stream, query, status) => {
    const service = await start(stream)
    const s2 = form === 'SSE' ? { ...headers, 's2-format': 'raw' } : { 'content-type': 's2s/proto' }
    const response = await service.call('GET', path(query, 'wait=0'), {
      basin: null,
      headers: { ...s2, 's2-basin': BASIN },
    })
    expect(response.status).toBe(status)
    expect(response.headers.get('content-type')).toBe(
      status === 416 ? 'application/json' : form === 'SSE' ? 'text/event-stream' : 's2s/proto',
    )
    const body = await response.text()
    if (status === 200 && (stream !== 'three' || query !== 'seq_num=0'))
      expect(body).toBe(form === 'SSE' ? 'data: [DONE]\n\n' : '')
    expectNothingOpen(service)
  })
})

test.each([
  ['trimmed', 'seq_num=0', 200],
  ['trimmed', 'tail_offset=2&wait=0', 200],
  ['expired', 'timestamp=0', 200],
  ['trimmed', 'seq_num=4', 416],
  ['empty', 'seq_num=0', 416],
] as const)('unary with the prefix s2: %s stream, %s → %s', async (stream, query, status) => {
  const service = await start(stream)
  const headers = { 's2-basin': BASIN }
  const response = await service.call('GET', path(query), { basin: null, headers })
  expect(response.status).toBe(status)
  if (status === 200) expect(await response.text()).toBe('{"records":[]}')
  expectNothingOpen(service)
})
