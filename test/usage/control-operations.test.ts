import { describe, expect, it } from 'vitest'
import { open } from '../../src/index.ts'
import type { Metric } from '../../src/model/metrics.ts'
import { usageMetrics } from '../../src/usage/index.ts'
import { testClock, testStorage } from '../support/index.ts'
import { START } from './support.ts'

const RANGE = { start: START * 1000, end: START * 1000 + 1000 }

function countsOf(metrics: readonly Metric[]): Record<string, number | undefined> {
  return Object.fromEntries(
    metrics.map((metric) => [
      metric.name,
      metric.kind === 'accumulation' ? metric.values[0]?.[1] : undefined,
    ]),
  )
}

describe('ensuring a basin or stream', () => {
  it('counts as a creation if it creates, else as a reconfiguration', async () => {
    const hw = await open({ storage: testStorage(), usage: usageMetrics(), clock: testClock() })
    for (let i = 0; i < 5; i++) await hw.ensureBasin('basin-one')
    await hw.ensureBasin('basin-one', { createStreamOnAppend: true })
    const basin = hw.basin('basin-one')
    for (let i = 0; i < 3; i++) await basin.ensureStream('s')
    await basin.ensureStream('s', { storageClass: 'standard' })
    await basin.ensureStream('s', { storageClass: 'express' })
    expect(countsOf(await hw.metrics({ set: 'account-ops', ...RANGE }))).toEqual({
      'create-basin': 1,
      'reconfigure-basin': 5,
    })
    expect(countsOf(await basin.metrics({ set: 'basin-ops', ...RANGE }))).toEqual({
      'create-stream': 1,
      'reconfigure-stream': 4,
    })
    await hw.close()
  })
})
