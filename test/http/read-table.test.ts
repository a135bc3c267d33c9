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
/** How many records there are, or 416: without waiting, with a wait, and with the prefix s2. */
type Row = readonly [
  stream: Stream,
  query: string,
  now: number | 416,
  waiting: number | 416,
  s2: number | 416,
]

// A row for each outcome; test/core/read-plan.test.ts has all of the table.
const ROWS: readonly Row[] = [
  ['three', 'seq_num=0', 3, 3, 3],
  ['three', 'seq_num=3', 416, 0, 416],
  ['three', 'seq_num=4', 416, 416, 416],
  ['three', 'tail_offset=2', 2, 2, 2],
  ['three', 'timestamp=150', 2, 2, 2],
  ['just trimmed', 'seq_num=0', 4, 4, 4],
  ['trimmed', 'seq_num=0', 416, 0, 0],
  ['expired', 'timestamp=0', 416, 0, 0],
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
  if (kind === 'empty') return service
  const stream = service.hw.basin(BASIN).stream('s')
  if (kind === 'expired') await stream.reconfigure({ retentionPolicy: { ageSeconds: 1 } })
  await stream.append([100, 200, 300].map((timestamp) => ({ body: 'x', timestamp })))
  // All but `three` have a tail of 4.
  if (kind === 'expired') await stream.append({ body: 'x', timestamp: 300 })
  if (kind === 'just trimmed' || kind === 'trimmed') await stream.trim(Number.MAX_SAFE_INTEGER)
  if (kind === 'trimmed') await service.clock.advance('10s')
  if (kind === 'expired') await service.clock.advance('2s')
  return service
}

async function recordsIn(form: Form, bytes: Uint8Array): Promise<number> {
  if (form === 'protobuf') {
    const frame = {
      kind: 'message',
      compression: undefined,
      reconnectAdvised: false,
      payload: bytes,
    } as const
    return (await readBatchOf(frame)).seqNums.length
  }
  if (form === 'session') {
    const batches = await Promise.all((await framesOf(bytes)).map(readBatchOf))
    return batches.flatMap(({ seqNums }) => seqNums).length
  }
  const text = new TextDecoder().decode(bytes)
  if (form === 'JSON') return JSON.parse(text).records.length
  const batches = parseSse(text).filter(({ event = 'end' }) => !['ping', 'end'].includes(event))
  return batches.flatMap(({ data }) => JSON.parse(data).records).length
}

const outcome = async (form: Form, response: Response, { hw, clock }: Service, waits = false) => {
  if (response.status === 200) {
    const reader = new BodyReader(response)
    if (waits) await clock.advance('6s')
    await reader.ended
    return recordsIn(form, reader.bytes)
  }
  const { tail } = (await response.json()) as { tail: { seq_num: number } }
  expect(tail.seq_num).toBe((await hw.basin(BASIN).stream('s').checkTail()).seqNum)
  return response.status
}

describe.each(Object.keys(FORMS) as Form[])('%s of', (form) => {
  const headers = FORMS[form]

  test.each(ROWS)(
    'a stream (%s) with %s is %s, with a wait %s, with s2 %s',
    async (stream, query, now, waiting, s2) => {
      const service = await start(stream)
      const path = `${RECORDS}?${query}&count=100`
      expect(await outcome(form, await service.call('GET', path, { headers }), service)).toBe(now)
      expect(await outcome(form, await service.call('GET', `${path}&wait=0`, { headers }), service)).toBe(now)

      const type = form === 'session' ? { 'content-type': 's2s/proto' } : headers
      const withS2 = await service.call('GET', `${path}&wait=0`, {
        basin: null,
        headers: { ...type, 's2-basin': BASIN },
      })
      expect(await outcome(form, withS2, service)).toBe(s2)

      const pending = service.call('GET', `${path}&wait=5`, { headers })
      await service.clock.settle()
      if (form === 'JSON' || form === 'protobuf') await service.clock.advance('6s')
      expect(await outcome(form, await pending, service, true)).toBe(waiting)
      expect(service.hw.stats()).toMatchObject({ openReads: 0, waitingReads: 0 })
    },
  )
})
