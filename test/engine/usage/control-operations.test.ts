import { describe, expect, it } from 'vitest'
import { type Metric, open } from '../../../src/index.ts'
import { testClock } from '../../test-clock.ts'
import { testStorage } from '../../test-storage.ts'
import { START } from './support.ts'

const RANGE = { start: START, end: START + 1 }

function counts(metrics: readonly Metric[]): Record<string, number | undefined> {
  return Object.fromEntries(
    metrics.map((metric) => [
      metric.name,
      metric.kind === 'accumulation' ? metric.values[0]?.[1] : undefined,
    ]),
  )
}

describe('making sure of something', () => {
  it('is a creation when it creates, and else a reconfiguration, also when nothing changes', async () => {
    const hw = await open({ storage: testStorage(), clock: testClock() })
    for (let i = 0; i < 5; i++) await hw.ensureBasin('basin-one')
    await hw.ensureBasin('basin-one', { createStreamOnAppend: true })
    const basin = hw.basin('basin-one')
    for (let i = 0; i < 3; i++) await basin.ensureStream('s')
    await basin.ensureStream('s', { storageClass: 'standard' })
    await basin.ensureStream('s', { storageClass: 'express' })
    expect(counts(await hw.metrics({ set: 'account-ops', ...RANGE }))).toEqual({
      'create-basin': 1,
      'reconfigure-basin': 5,
    })
    expect(counts(await basin.metrics({ set: 'basin-ops', ...RANGE }))).toEqual({
      'create-stream': 1,
      'reconfigure-stream': 4,
    })
    await hw.close()
  })
})
