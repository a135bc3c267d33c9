import { beforeEach, describe, expect, it } from 'vitest'
import type { AccountMetricSet, BasinMetricSet, MetricInterval, MetricUnit } from '../../src/model/metrics.ts'
import {
  advanceTo,
  append,
  createBasin,
  createStream,
  DAY,
  HOUR,
  MINUTE,
  ofAccount,
  ofBasin,
  ofStream,
  openUsage,
  rangeOf,
  recordAppend,
  type TestUsage,
  upkeep,
} from './support.ts'

const A = { basin: 'basin-one', stream: 'a' }
const B = { basin: 'basin-one', stream: 'b' }

let test: TestUsage

beforeEach(async () => {
  test = await openUsage()
  await createBasin(test, 'basin-one')
  await createStream(test, A)
})

const TWO_HOURS = [0, 2 * HOUR] as const

/** Usage of two hours. */
async function recordTwoHours(): Promise<void> {
  const { usage } = test
  const [first, second] = [{}, {}]
  usage.operation('create-basin', undefined)
  usage.operation('list-basins', undefined)
  usage.operation('check-tail', 'basin-one')
  usage.operation('list-streams', 'basin-one')
  usage.operation('check-tail', 'basin-one')
  usage.operation('basin-metrics', 'basin-one')
  // One operation for each stream, connection and minute.
  recordAppend(test, A, 10, first)
  recordAppend(test, A, 10, first)
  recordAppend(test, A, 10, second)
  recordAppend(test, B, 10, first)
  recordAppend(test, B, 7, first, { storageClass: 'express' })
  recordAppend(test, { basin: 'basin-one', stream: 'c' }, 8, first, { storageClass: 'express' })
  await advanceTo(test, 30)
  const endOfLong = usage.streamingRead('basin-one')
  const endOfShort = usage.streamingRead('basin-one')
  usage.unaryRead('basin-one')
  usage.delivered('basin-one', 100)
  usage.delivered('basin-one', 20)
  usage.delivered('basin-one', 0)
  await advanceTo(test, MINUTE - 1)
  recordAppend(test, A, 10, first)
  await advanceTo(test, MINUTE)
  recordAppend(test, A, 10, first)
  await advanceTo(test, 89)
  endOfShort()
  await advanceTo(test, 30 + 3 * MINUTE)
  endOfShort()
  endOfLong()
  await append(test, A, 5, second)
  await advanceTo(test, HOUR)
  usage.operation('list-basins', undefined)
  usage.operation('list-streams', 'basin-one')
  await advanceTo(test, 2 * HOUR)
}

describe('each metric set', () => {
  it.each<[AccountMetricSet, MetricUnit, object]>([
    ['account-ops', 'operations', { 'list-basins': '0:1 1h:1', 'create-basin': '0:1' }],
  ])('of the account: %s counts %s by the hour', async (set, unit, expected) => {
    await recordTwoHours()
    expect(await ofAccount(test, set, TWO_HOURS)).toEqual(expected)
    const metrics = await test.usage.metrics.account({ set, ...rangeOf(TWO_HOURS) })
    for (const metric of metrics)
      expect(metric).toMatchObject({ kind: 'accumulation', unit, interval: 'hour' })
  })

  it.each<[BasinMetricSet, MetricUnit, MetricInterval, object]>([
    [
      'basin-ops',
      'operations',
      'hour',
      { 'list-streams': '0:1 1h:1', 'check-tail': '0:2', 'basin-metrics': '0:1' },
    ],
    ['append-ops', 'operations', 'minute', { standard: '0:3 1m:1 3m:1', express: '0:1' }],
    ['append-throughput', 'bytes', 'minute', { standard: '0:50 1m:10 3m:5', express: '0:15' }],
    ['read-ops', 'operations', 'minute', { unary: '0:1', streaming: '0:2 1m:1 2m:1 3m:1' }],
    ['read-throughput', 'bytes', 'minute', { read_bytes: '0:120' }],
  ])('of a basin: %s counts %s by the %s', async (set, unit, interval, expected) => {
    await recordTwoHours()
    expect(await ofBasin(test, 'basin-one', set, TWO_HOURS)).toEqual(expected)
    const metrics = await test.usage.metrics.basin('basin-one', { set, ...rangeOf(TWO_HOURS) })
    expect(metrics.map(({ name }) => name)).toEqual(Object.keys(expected))
    for (const metric of metrics) expect(metric).toMatchObject({ kind: 'accumulation', unit, interval })
  })

  it('of what there is shows the present', async () => {
    await recordTwoHours()
    const { metrics } = test.usage
    const now = rangeOf([2 * HOUR, 2 * HOUR])
    const gauge = { kind: 'gauge', name: 'metered_size', unit: 'bytes', values: [[now.start, 5]] }
    expect(await metrics.basin('basin-one', { set: 'storage', ...now })).toEqual([gauge])
    expect(await metrics.stream(A, { set: 'storage', ...now })).toEqual([gauge])
    const label = { kind: 'label', name: 'active_basins', values: ['basin-one'] }
    expect(await metrics.account({ set: 'active-basins', ...now })).toEqual([label])
  })

  it('counts an open streaming read', async () => {
    test.usage.streamingRead('basin-one')
    await advanceTo(test, 2 * MINUTE + 1)
    const { streaming } = await ofBasin(test, 'basin-one', 'read-ops', [0, 2 * MINUTE + 1], 'hour')
    expect(streaming).toEqual('0:3')
  })

  it('separates basins by their full names', async () => {
    await createBasin(test, 'basin-on')
    test.usage.delivered('basin-on', 3)
    expect(await ofBasin(test, 'basin-on', 'read-throughput', [0, 1])).toEqual({ read_bytes: '0:3' })
    expect(await ofBasin(test, 'basin-one', 'read-throughput', [0, 1])).toEqual({ read_bytes: '' })
  })
})

describe('the intervals of a query', () => {
  const of = async (interval: 'minute' | 'hour' | 'day', range: readonly [number, number]) =>
    (await ofBasin(test, 'basin-one', 'read-throughput', range, interval)).read_bytes

  it('add up minutes, hours and days', async () => {
    for (const seconds of [5, 30, 61, HOUR - 1, HOUR, 23 * HOUR, DAY, DAY + HOUR + 1]) {
      await advanceTo(test, seconds)
      test.usage.delivered('basin-one', 1)
    }
    await advanceTo(test, 2 * DAY)
    const lastHours = '1h:1 23h:1 1d:1 25h:1'
    const range = [0, 2 * DAY] as const
    expect(await of('minute', range)).toBe(`0:2 1m:1 59m:1 ${lastHours}`)
    expect(await of('hour', range)).toBe(`0:4 ${lastHours}`)
    expect(await of('day', range)).toEqual('0:6 1d:2')
  })

  it('are kept for 3 days by minute, 40 by hour and 400 by day, with the same totals', async () => {
    for (const seconds of [10, 70, HOUR + 10, 5 * HOUR]) {
      await advanceTo(test, seconds)
      test.usage.delivered('basin-one', 1)
    }
    const byHour = '0:2 1h:1 5h:1'
    const byMinute = '0:1 1m:1 1h:1 5h:1'
    const byDay = '0:4'
    for (const [days, minutes, hours, total] of [
      [3, byMinute, byHour, byDay],
      [4, byHour, byHour, byDay],
      [40, byHour, byHour, byDay],
      [42, byDay, byDay, byDay],
      [399, byDay, byDay, byDay],
      [511, '', '', ''],
    ] as const) {
      await advanceTo(test, days * DAY)
      await upkeep(test)
      const kept = await Promise.all((['minute', 'hour', 'day'] as const).map((by) => of(by, [0, DAY])))
      expect(kept, `after ${days} days`).toEqual([minutes, hours, total])
    }
  })

  it('are found after weeks without an engine', async () => {
    test.usage.delivered('basin-one', 7)
    test.usage.operation('list-basins', undefined)
    await test.usage.close()
    await advanceTo(test, 50 * DAY)
    test = await openUsage(test)
    expect(await of('minute', [0, DAY])).toEqual('0:7')
    expect(await ofAccount(test, 'account-ops', [0, DAY], 'day')).toEqual({ 'list-basins': '0:1' })
  })
})

describe('unknown names', () => {
  it('have no usage', async () => {
    const range = [0, 1] as const
    expect(await ofBasin(test, 'no-basin', 'append-ops', range)).toEqual({ standard: '', express: '' })
    expect(await ofBasin(test, 'no-basin', 'basin-ops', range)).toEqual({})
    expect(await ofBasin(test, 'no-basin', 'storage', range)).toEqual({ metered_size: '' })
    expect(await ofStream(test, { basin: 'no-basin', stream: 'a' }, range)).toBe('')
    expect(await ofStream(test, { basin: 'basin-one', stream: 'none' }, range)).toBe('')
  })

  it('leave no documents behind when they are asked for', async () => {
    test.usage.operation('basin-metrics', 'no-basin')
    test.usage.operation('stream-metrics', 'no-basin')
    await test.usage.close()
    expect(await test.session.list('usage', { prefix: '', after: '', limit: 10 })).toEqual([])
  })

  it('have usage if they are of a basin that was deleted before it was stored', async () => {
    test.usage.operation('list-streams', 'gone-basin')
    test.usage.operation('basin-metrics', 'gone-basin')
    expect(await ofBasin(test, 'gone-basin', 'basin-ops', [0, 1])).toEqual({
      'list-streams': '0:1',
      'basin-metrics': '0:1',
    })
  })

  it.each<[string, (usage: TestUsage['usage']) => Promise<unknown>]>([
    ['basin', ({ metrics }) => metrics.basin('Not a name', { set: 'storage', start: 0, end: 0 })],
    ['stream', ({ metrics }) => metrics.stream({ ...A, stream: '' }, { set: 'storage', start: 0, end: 0 })],
    ['start', ({ metrics }) => metrics.account({ set: 'account-ops' })],
  ])('and queries that are malformed are `invalid`: %s', async (field, ask) => {
    await expect(ask(test.usage)).rejects.toMatchObject({ code: 'invalid', field })
  })
})

describe('counters', () => {
  it('count what this engine did since it opened', async () => {
    recordAppend(test, A, 30, test, { records: 3 })
    recordAppend(test, A, 10, test, { storageClass: 'express' })
    test.usage.unaryRead('basin-one')
    test.usage.streamingRead('basin-one')()
    test.usage.delivered('basin-one', 20)
    test.usage.operation('list-basins', undefined)
    const before = test.usage.counters()
    test.usage.operation('list-basins', undefined)
    expect(before.operations).toEqual({ 'list-basins': 1 })
    expect(test.usage.counters()).toMatchObject({
      operations: { 'list-basins': 2 },
      appends: 2,
      appendedRecords: 4,
      appendedBytes: 40,
      readBatches: 1,
      readBytes: 20,
      unaryReads: 1,
      streamingReads: 1,
      appendQueueSeconds: { sum: 0.006 },
      appendAckSeconds: { sum: 0.04 },
    })
  })
})
