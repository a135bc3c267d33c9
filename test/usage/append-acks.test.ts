import { afterEach, describe, expect, it, vi } from 'vitest'
import { StoredUsageMeter } from '../../src/usage/usage-meter.ts'
import { openEngine } from '../support/index.ts'

afterEach(() => {
  vi.restoreAllMocks()
})

describe('a durable append', () => {
  it('is acknowledged even if recording its usage fails', async () => {
    const errors: unknown[] = []
    const { hw, stream } = await openEngine({ onBackgroundError: (error) => errors.push(error) })
    const failure = new Error('not recorded')
    vi.spyOn(StoredUsageMeter.prototype, 'appended').mockImplementation(() => {
      throw failure
    })
    expect(await stream.append('x')).toMatchObject({ end: { seqNum: 1 } })
    expect(errors).toEqual([failure])
    await hw.close()
  })

  it('is in the metrics once it is acknowledged', async () => {
    const { hw, clock, stream } = await openEngine()
    const start = clock.now()
    const query = { set: 'append-throughput', start, end: start + 1000 } as const
    for (const bytes of [9, 18]) {
      const metrics = await stream.append('x').then(() => hw.basin('basin').metrics(query))
      const express = metrics.find(({ name }) => name === 'express')
      expect(express?.kind === 'accumulation' && express.values[0]?.[1]).toBe(bytes)
    }
    expect((await hw.counters()).appends).toBe(2)
    await hw.close()
  })
})
