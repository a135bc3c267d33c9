import { describe, expect, it } from 'vitest'
import { usageMetrics } from '../../src/usage/index.ts'
import { openEngine } from '../support/index.ts'

describe('a durable append', () => {
  it('is acknowledged even if recording its usage fails', async () => {
    const errors: unknown[] = []
    const failure = new Error('not recorded')
    const appended = () => {
      throw failure
    }
    const { hw, stream } = await openEngine({
      usage: { open: (context) => Object.assign(usageMetrics().open(context), { appended }) },
      onBackgroundError: (error) => errors.push(error),
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
