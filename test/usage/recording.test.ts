import { beforeEach, describe, expect, it } from 'vitest'
import type { AppendUsage } from '../../src/engine/service/usage.ts'
import {
  activeBasins,
  advanceTo,
  append,
  createBasin,
  createStream,
  DAY,
  HOUR,
  MINUTE,
  maintain,
  ofAccount,
  ofBasin,
  ofStream,
  openUsage,
  recordAppend,
  START,
  type TestUsage,
} from './support.ts'

const A = { basin: 'basin-one', stream: 'a' }
const B = { basin: 'basin-one', stream: 'b' }
const TODAY = [0, DAY] as const

let test: TestUsage

beforeEach(async () => {
  test = await openUsage()
  await createBasin(test, 'basin-one')
  await createStream(test, A)
  await createStream(test, B)
})

/** Queries of the future are rejected. */
async function atTheEndOfTheDay(): Promise<void> {
  await advanceTo(test, DAY - 1)
}

function appendOf(usage: Partial<AppendUsage>): void {
  test.usage.appended({
    basin: 'basin-one',
    logId: 'a',
    storageClass: 'standard',
    records: 1,
    meteredBytes: 1,
    connection: test,
    at: test.clock.now(),
    queueMs: 3,
    ackMs: 20,
    ...usage,
  })
}

describe('append operations and bytes', () => {
  it('count one operation for each stream, connection and minute, and all bytes', async () => {
    const [first, second] = [{}, {}]
    recordAppend(test, A, 10, first)
    recordAppend(test, A, 10, first)
    recordAppend(test, A, 10, second)
    recordAppend(test, B, 10, first)
    await advanceTo(test, MINUTE - 1)
    recordAppend(test, A, 10, first)
    await advanceTo(test, MINUTE)
    recordAppend(test, A, 10, first)
    await advanceTo(test, 10 * MINUTE)
    recordAppend(test, A, 10, second)
    await atTheEndOfTheDay()
    expect(await ofBasin(test, 'basin-one', 'append-ops', TODAY)).toEqual({
      standard: [
        [0, 3],
        [MINUTE, 1],
        [10 * MINUTE, 1],
      ],
      express: [],
    })
    expect(await ofBasin(test, 'basin-one', 'append-throughput', TODAY)).toEqual({
      standard: [
        [0, 50],
        [MINUTE, 10],
        [10 * MINUTE, 10],
      ],
      express: [],
    })
  })

  it('are separate for each storage class', async () => {
    appendOf({ storageClass: 'express', meteredBytes: 5 })
    appendOf({ storageClass: 'standard', meteredBytes: 7, logId: 'b' })
    await advanceTo(test, 1)
    expect(await ofBasin(test, 'basin-one', 'append-ops', [0, 1])).toEqual({
      standard: [[0, 1]],
      express: [[0, 1]],
    })
    expect(await ofBasin(test, 'basin-one', 'append-throughput', [0, 1])).toEqual({
      standard: [[0, 7]],
      express: [[0, 5]],
    })
  })
})

describe('read operations and bytes', () => {
  it('a streaming read counts once when it opens and once for each further full minute', async () => {
    await advanceTo(test, 30)
    const endOfLong = test.usage.streamingRead('basin-one')
    const endOfShort = test.usage.streamingRead('basin-one')
    test.usage.unaryRead('basin-one')
    await advanceTo(test, 89)
    endOfShort()
    await advanceTo(test, 30 + 5 * MINUTE)
    endOfShort()
    endOfLong()
    await atTheEndOfTheDay()
    expect(await ofBasin(test, 'basin-one', 'read-ops', TODAY)).toEqual({
      unary: [[0, 1]],
      streaming: [[0, 2], ...[1, 2, 3, 4, 5].map((minute) => [minute * MINUTE, 1])],
    })
  })

  it('an open streaming read counts in queries', async () => {
    test.usage.streamingRead('basin-one')
    await advanceTo(test, 2 * MINUTE + 1)
    expect(await ofBasin(test, 'basin-one', 'read-ops', [0, HOUR / 60], 'minute')).toMatchObject({
      streaming: [[0, 1]],
    })
    expect(await ofBasin(test, 'basin-one', 'read-ops', [0, 2 * MINUTE + 1], 'hour')).toMatchObject({
      streaming: [[0, 3]],
    })
    await test.usage.close()
  })

  it('bytes of all readers count', async () => {
    test.usage.delivered('basin-one', 100)
    test.usage.delivered('basin-one', 20)
    test.usage.delivered('basin-one', 0)
    await advanceTo(test, 1)
    expect(await ofBasin(test, 'basin-one', 'read-throughput', [0, 1])).toEqual({ read_bytes: [[0, 120]] })
  })
})

describe('control operations', () => {
  it('are counted for the account or a basin', async () => {
    test.usage.operation('check-tail', 'basin-one')
    test.usage.operation('list-streams', 'basin-one')
    test.usage.operation('check-tail', 'basin-one')
    test.usage.operation('basin-metrics', 'basin-one')
    test.usage.operation('create-basin', undefined)
    test.usage.operation('list-basins', undefined)
    await advanceTo(test, HOUR)
    test.usage.operation('list-basins', undefined)
    test.usage.operation('list-streams', 'basin-one')
    await advanceTo(test, 2 * HOUR)
    const range = [0, 2 * HOUR] as const
    const ofTheBasin = await ofBasin(test, 'basin-one', 'basin-ops', range)
    expect(ofTheBasin).toEqual({
      'list-streams': [
        [0, 1],
        [HOUR, 1],
      ],
      'check-tail': [[0, 2]],
      'basin-metrics': [[0, 1]],
    })
    expect(Object.keys(ofTheBasin)).toEqual(['list-streams', 'check-tail', 'basin-metrics'])
    expect(await ofAccount(test, 'account-ops', range)).toEqual({
      'create-basin': [[0, 1]],
      'list-basins': [
        [0, 1],
        [HOUR, 1],
      ],
    })
    expect(await ofAccount(test, 'account-ops', [HOUR, 2 * HOUR])).toEqual({ 'list-basins': [[HOUR, 1]] })
  })
})

describe('metrics of intervals', () => {
  it('add up minutes, hours and days', async () => {
    for (const seconds of [5, 30, 61, HOUR - 1, HOUR, 23 * HOUR, DAY, DAY + HOUR + 1]) {
      await advanceTo(test, seconds)
      test.usage.delivered('basin-one', 1)
    }
    await advanceTo(test, 2 * DAY)
    const range = [0, 2 * DAY] as const
    const of = (interval: 'minute' | 'hour' | 'day') =>
      ofBasin(test, 'basin-one', 'read-throughput', range, interval)
    expect((await of('minute')).read_bytes).toEqual([
      [0, 2],
      [MINUTE, 1],
      [HOUR - MINUTE, 1],
      [HOUR, 1],
      [23 * HOUR, 1],
      [DAY, 1],
      [DAY + HOUR, 1],
    ])
    expect((await of('hour')).read_bytes).toEqual([
      [0, 4],
      [HOUR, 1],
      [23 * HOUR, 1],
      [DAY, 1],
      [DAY + HOUR, 1],
    ])
    expect((await of('day')).read_bytes).toEqual([
      [0, 6],
      [DAY, 2],
    ])
  })

  it('include their unit and interval', async () => {
    const range = { start: START * 1000, end: START * 1000 }
    expect(await test.usage.metrics.basin('basin-one', { set: 'append-throughput', ...range })).toEqual([
      { kind: 'accumulation', name: 'standard', unit: 'bytes', interval: 'minute', values: [] },
      { kind: 'accumulation', name: 'express', unit: 'bytes', interval: 'minute', values: [] },
    ])
    expect(
      await test.usage.metrics.basin('basin-one', { set: 'read-ops', interval: 'day', ...range }),
    ).toEqual([
      { kind: 'accumulation', name: 'unary', unit: 'operations', interval: 'day', values: [] },
      { kind: 'accumulation', name: 'streaming', unit: 'operations', interval: 'day', values: [] },
    ])
    expect(await test.usage.metrics.stream(A, { set: 'storage', ...range })).toEqual([
      { kind: 'gauge', name: 'metered_size', unit: 'bytes', values: [[START * 1000, 0]] },
    ])
    expect(await test.usage.metrics.account({ set: 'active-basins', ...range })).toEqual([
      { kind: 'label', name: 'active_basins', values: ['basin-one'] },
    ])
  })
})

describe('old usage', () => {
  it('is kept by minute for 3 days, by hour for 40 and by day for 400, with the same totals', async () => {
    const of = (interval: 'minute' | 'hour' | 'day') =>
      ofBasin(test, 'basin-one', 'read-throughput', [0, DAY], interval).then(({ read_bytes }) => read_bytes)
    for (const seconds of [10, 70, HOUR + 10, 5 * HOUR]) {
      await advanceTo(test, seconds)
      test.usage.delivered('basin-one', 1)
    }
    const byHour = [
      [0, 2],
      [HOUR, 1],
      [5 * HOUR, 1],
    ]
    const byMinute = [[0, 1], [MINUTE, 1], ...byHour.slice(1)]
    const byDay = [[0, 4]]
    for (const [days, finest, hours, total] of [
      [3, byMinute, byHour, byDay],
      [4, byHour, byHour, byDay],
      [40, byHour, byHour, byDay],
      [42, byDay, byDay, byDay],
      [399, byDay, byDay, byDay],
      [511, [], [], []],
    ] as const) {
      await advanceTo(test, days * DAY)
      await maintain(test)
      expect([await of('minute'), await of('hour'), await of('day')], `${days}`).toEqual([
        finest,
        hours,
        total,
      ])
    }
  })

  it('is found even after weeks without an engine', async () => {
    test.usage.delivered('basin-one', 7)
    test.usage.operation('list-basins', undefined)
    await test.usage.close()
    await advanceTo(test, 50 * DAY)
    const next = await openUsage(test)
    expect(await ofBasin(next, 'basin-one', 'read-throughput', [0, DAY])).toEqual({ read_bytes: [[0, 7]] })
    expect(await ofAccount(next, 'account-ops', [0, DAY], 'day')).toEqual({ 'list-basins': [[0, 1]] })
  })
})

describe('unknown names', () => {
  it('have no usage', async () => {
    await advanceTo(test, HOUR)
    await maintain(test)
    const range = [0, HOUR] as const
    expect(await ofBasin(test, 'no-basin', 'append-ops', range)).toEqual({ standard: [], express: [] })
    expect(await ofBasin(test, 'no-basin', 'basin-ops', range)).toEqual({})
    expect(await ofBasin(test, 'no-basin', 'storage', range)).toEqual({ metered_size: [] })
    expect(await ofStream(test, { basin: 'no-basin', stream: 'a' }, range)).toEqual([])
    expect(await ofStream(test, { basin: 'basin-one', stream: 'none' }, range)).toEqual([])
    // The engine records these operations for the queries above.
    test.usage.operation('basin-metrics', 'no-basin')
    test.usage.operation('stream-metrics', 'no-basin')
    expect(await activeBasins(test, [HOUR, HOUR + 1])).toEqual(['basin-one'])
  })

  it('usage of a basin counts even if it is deleted before the flush', async () => {
    test.usage.operation('list-streams', 'gone-basin')
    test.usage.operation('basin-metrics', 'gone-basin')
    await advanceTo(test, 1)
    expect(await ofBasin(test, 'gone-basin', 'basin-ops', [0, 1])).toEqual({
      'list-streams': [[0, 1]],
      'basin-metrics': [[0, 1]],
    })
  })

  it.each<[string, () => Promise<unknown>, string]>([
    [
      'of a basin',
      () => test.usage.metrics.basin('Not a name', { set: 'storage', start: 0, end: 0 }),
      'basin',
    ],
    [
      'of a stream',
      () =>
        test.usage.metrics.stream({ basin: 'basin-one', stream: '' }, { set: 'storage', start: 0, end: 0 }),
      'stream',
    ],
    ['bounds', () => test.usage.metrics.account({ set: 'account-ops' }), 'start'],
  ])('invalid queries are rejected with 422: %s', async (_, ask, field) => {
    await expect(ask()).rejects.toMatchObject({ code: 'invalid', field })
  })
})

describe('counters', () => {
  it('count the operations of this engine since it opened', async () => {
    appendOf({ records: 3, meteredBytes: 30 })
    appendOf({ records: 1, meteredBytes: 10, storageClass: 'express' })
    test.usage.unaryRead('basin-one')
    test.usage.streamingRead('basin-one')()
    test.usage.delivered('basin-one', 20)
    test.usage.operation('list-basins', undefined)
    const before = test.usage.counters()
    test.usage.operation('list-basins', undefined)
    expect(before.operations).toEqual({ 'list-basins': 1 })
    await advanceTo(test, 10 * MINUTE)
    expect(test.usage.counters()).toMatchObject({
      operations: { 'list-basins': 2 },
      appends: 2,
      appendedRecords: 4,
      appendedBytes: 40,
      readBatches: 1,
      readBytes: 20,
      unaryReads: 1,
      streamingReads: 1,
    })
  })
})

describe('several basins', () => {
  it('are separate, by their full names', async () => {
    await createBasin(test, 'basin-on')
    await append(test, A, 5)
    test.usage.delivered('basin-on', 3)
    await maintain(test)
    await advanceTo(test, 1)
    expect(await ofBasin(test, 'basin-on', 'append-throughput', [0, 1])).toEqual({
      standard: [],
      express: [],
    })
    expect(await ofBasin(test, 'basin-on', 'read-throughput', [0, 1])).toEqual({ read_bytes: [[0, 3]] })
    expect(await ofBasin(test, 'basin-one', 'read-throughput', [0, 1])).toEqual({ read_bytes: [] })
  })
})
