import { describe, expect, test } from 'vitest'
import {
  BASIN,
  BodyReader,
  bytesOf,
  errorInFrame,
  framesOf,
  RECORDS,
  readBatchOf,
  startWithRecords,
} from './support.ts'

const NOW = Date.UTC(2025, 0, 1)

async function start() {
  const service = await startWithRecords('a', 'b', 'c')
  const read = (query: string, headers: Record<string, string> = {}) =>
    service.call('GET', `${RECORDS}${query}`, {
      // The content type wins over what is accepted.
      headers: { 'content-type': 'svcs/proto', accept: 'text/event-stream', ...headers },
    })
  const batchesIn = async (reader: BodyReader) => Promise.all((await framesOf(reader.bytes)).map(readBatchOf))
  return { ...service, read, batchesIn }
}

describe('binary read session', () => {
  test.each([
    ['svcs/proto', 'svc', 'svcs/proto'],
    ['S2S/Proto; x=y', 's2', 's2s/proto'],
  ])('responds with the header prefix of the request: %s', async (type, prefix, responsePrefix) => {
    const { call } = await start()
    const headers = { 'content-type': type, [`${prefix}-basin`]: BASIN }
    const response = await call('GET', `${RECORDS}?seq_num=0&count=3`, { basin: null, headers })
    expect(response.headers.get('content-type')).toBe(responsePrefix)
    expect(response.headers.get('cache-control')).toBe('no-cache, no-transform')
    expect(response.headers.get('x-accel-buffering')).toBe('no')
    const frames = await framesOf(await bytesOf(response))
    expect(await Promise.all(frames.map(readBatchOf))).toEqual([
      { seqNums: [0, 1, 2], bodies: ['a', 'b', 'c'], tail: { seqNum: 3, timestamp: NOW } },
    ])
  })

  test('sends an empty batch with the tail on reaching it and after each silence', async () => {
    const { read, clock, stream, batchesIn, expectNothingOpen } = await start()
    const reader = new BodyReader(await read('?tail_offset=1'))
    await clock.advance('1s')
    await stream.append('d')
    await clock.advance('15s')
    const tail = { seqNum: 4, timestamp: NOW + 1000 }
    expect((await batchesIn(reader)).slice(0, 4)).toEqual([
      { seqNums: [2], bodies: ['c'], tail: { seqNum: 3, timestamp: NOW } },
      { seqNums: [], bodies: [], tail: { seqNum: 3, timestamp: NOW } },
      { seqNums: [3], bodies: ['d'], tail },
      { seqNums: [], bodies: [], tail },
    ])
    await reader.cancel()
    expectNothingOpen()
  })

  test('ends without a terminal frame when the wait has passed', async () => {
    const { read, clock, batchesIn, expectNothingOpen } = await start()
    const reader = new BodyReader(await read('?wait=3'))
    await clock.advance(2_999)
    expect((await batchesIn(reader)).length).toBe(1)
    await clock.advance(1)
    await reader.ended
    expect((await batchesIn(reader)).length).toBe(1)
    expectNothingOpen()
  })

  test.each([
    ['gzip', 'gzip'],
    ['zstd', 'zstd'],
    [undefined, undefined],
  ])('compresses long batches by `accept-encoding`: %s', async (accepted, compression) => {
    const { read, stream } = await start()
    await stream.append('x'.repeat(2000))
    const headers = accepted === undefined ? {} : { 'accept-encoding': accepted }
    const response = await read('?seq_num=3&count=1', headers)
    expect(response.headers.has('content-encoding')).toBe(false)
    const [frame] = await framesOf(await bytesOf(response))
    expect(frame).toMatchObject({ kind: 'message', compression })
    expect((await readBatchOf(frame!)).bodies).toEqual(['x'.repeat(2000)])
    const [short] = await framesOf(await bytesOf(await read('?seq_num=0&count=1', headers)))
    expect(short).toMatchObject({ kind: 'message', compression: undefined })
  })

  test('ends with a terminal frame when the stream is deleted', async () => {
    const { read, clock, hw } = await start()
    const reader = new BodyReader(await read(''))
    await clock.settle()
    await hw.basin(BASIN).stream('s').delete()
    await reader.ended
    const error = { status: 503, code: 'unavailable', message: 'the stream was deleted' }
    expect(errorInFrame((await framesOf(reader.bytes)).at(-1))).toEqual(error)
    expect(hw.stats()).toMatchObject({ openReads: 0, waitingReads: 0 })
  })
})
