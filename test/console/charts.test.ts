import { describe, expect, it, onTestFinished } from 'vitest'
import { Connection } from '../../adapters/console/connection.ts'
import { loadNumbers } from '../../adapters/console/numbers.tsx'
import { chartOf, metricSetsOf, queryMetrics, RANGES, tableOf } from '../../adapters/console/usage/metrics.ts'
import { createHandler } from '../../adapters/http/index.ts'
import { memory } from '../../adapters/storage/memory/index.ts'
import { virtualClock } from '../../adapters/testing/index.ts'
import { open } from '../../src/index.ts'
import { endOfUsage, type MetricPoint } from '../../src/model/metrics.ts'
import { usageMetrics } from '../../src/usage/index.ts'

const TARGET = { url: 'http://localhost:8787', headerPrefix: 'svc' } as const

/** Minutes of usage. */
const points = (...values: readonly (readonly [minute: number, value: number])[]): MetricPoint[] =>
  values.map(([minute, value]) => [minute * 60_000, value])
const seriesOf = (name: string, ...values: readonly (readonly [minute: number, value: number])[]) => ({
  name,
  points: points(...values),
  summary: 0,
})

describe('charts', () => {
  it('include appends in the first second of a minute', async () => {
    const clock = virtualClock({ now: Date.UTC(2025, 0, 1) })
    const hw = await open({ storage: memory(), usage: usageMetrics(), clock })
    onTestFinished(() => hw.close())
    const basin = await hw.createBasin('basin-of-usage').then(() => hw.basin('basin-of-usage'))
    await basin.createStream('metered')
    await basin.stream('metered').append(['x'.repeat(992)])
    const connection = new Connection(createHandler(hw, { auth: 'none' }), TARGET)
    onTestFinished(() => connection.close())
    const of = { basin: 'basin-of-usage' }
    const appended = metricSetsOf(of).find(({ set }) => set === 'append-throughput')!
    const end = endOfUsage(clock.now()) * 1000
    const metrics = await queryMetrics(connection, of, appended, RANGES[0], end)
    expect(chartOf(metrics).series).toMatchObject([{ name: 'express', summary: 1000 }])
  })

  it('give the rate of a basin over all of its storage classes', async () => {
    const hw = await open({ storage: memory(), usage: usageMetrics() })
    onTestFinished(() => hw.close())
    const basin = await hw.createBasin('basin-of-classes').then(() => hw.basin('basin-of-classes'))
    const connection = new Connection(createHandler(hw, { auth: 'none' }), TARGET)
    onTestFinished(() => connection.close())
    for (const storageClass of ['express', 'standard'] as const) {
      await connection.hw.basin('basin-of-classes').createStream(storageClass, { storageClass } as object)
      await basin.stream(storageClass).append(['x'.repeat(992)])
    }
    const of = { basin: 'basin-of-classes' }
    const { rates = [] } = await loadNumbers(connection, of, undefined, new AbortController().signal)
    expect(Math.round(rates.reduce((sum, rate) => sum + rate * 60, 0))).toBe(2000)
  })

  it('have the largest series first, and none without usage', () => {
    const accumulation = (name: string, values: MetricPoint[]) =>
      ({ kind: 'accumulation', name, unit: 'operations', interval: 'minute', values }) as const
    const chart = chartOf([
      accumulation('few', points([1, 1])),
      accumulation('many', points([2, 5])),
      accumulation('none', []),
    ])
    expect(chart.series.map(({ name, summary }) => [name, summary])).toEqual([
      ['many', 5],
      ['few', 1],
    ])
  })

  it('have zero in intervals without usage, and the last measurement until the next one', () => {
    const series = seriesOf('one', [1, 4], [3, 6])
    const range = { start: 0, end: 4 * 60_000, step: 60_000 }
    const valuesOf = (kind: 'totals' | 'measurements') => tableOf({ kind, series: [series] }, range)[1]
    expect(valuesOf('totals')).toEqual([0, 4, 0, 6])
    expect(valuesOf('measurements')).toEqual([0, 4, 4, 6])
  })
})
