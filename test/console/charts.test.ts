import { describe, expect, it, onTestFinished } from 'vitest'
import { Client } from '../../adapters/console/api/client.ts'
import type { Metric } from '../../adapters/console/api/types.ts'
import {
  alignedData,
  chartOf,
  metricSetsOf,
  metricsCall,
  RANGES,
  stacked,
} from '../../adapters/console/usage/metrics.ts'
import { createHandler } from '../../adapters/http/index.ts'
import { memory } from '../../adapters/storage/memory/index.ts'
import { virtualClock } from '../../adapters/testing/index.ts'
import { open } from '../../src/index.ts'
import { endOfUsage } from '../../src/model/metrics.ts'
import { usageMetrics } from '../../src/usage/index.ts'

const TARGET = { url: 'http://localhost:8787', basinUrl: undefined, headerPrefix: 'svc' }

describe('charts', () => {
  it('include appends in the first second of a minute', async () => {
    const clock = virtualClock({ now: Date.UTC(2025, 0, 1) })
    const hw = await open({ storage: memory(), usage: usageMetrics(), clock })
    onTestFinished(() => hw.close())
    const basin = await hw.createBasin('basin-of-usage').then(() => hw.basin('basin-of-usage'))
    await basin.createStream('metered')
    await basin.stream('metered').append(['x'.repeat(992)])
    const client = new Client(createHandler(hw, { auth: 'none' }), TARGET)
    const of = { basin: 'basin-of-usage' }
    const appended = metricSetsOf(of).find(({ set }) => set === 'append-throughput')!
    const call = metricsCall(of, appended, RANGES[0], endOfUsage(clock.now()))
    const { values } = await client.json<{ values: Metric[] }>(call)
    expect(chartOf(values).series).toMatchObject([{ name: 'express', summary: 1000 }])
  })

  it('have zero in intervals without usage, and the largest series first', () => {
    const accumulation = (name: string, values: [number, number][]) => ({
      accumulation: { name, unit: 'operations', interval: 'minute', values },
    })
    const chart = chartOf([
      accumulation('few', [[60, 1]]),
      accumulation('many', [[120, 5]]),
      accumulation('none', []),
    ])
    expect(chart.series.map(({ name, summary }) => [name, summary])).toEqual([
      ['many', 5],
      ['few', 1],
    ])
    expect(alignedData(chart, { start: 60, end: 240, interval: 'minute' })).toEqual([
      [60, 120, 180],
      [0, 5, 0],
      [1, 0, 0],
    ])
  })
})

it('stacks each series on those after it', () => {
  expect(
    stacked([
      [60, 120],
      [1, 2],
      [10, null],
    ]),
  ).toEqual([
    [60, 120],
    [11, 2],
    [10, 0],
  ])
})
