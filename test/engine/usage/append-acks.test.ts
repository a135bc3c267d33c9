import { afterEach, describe, expect, it, vi } from 'vitest'
import { Usage } from '../../../src/engine/usage/usage.ts'
import { openEngine } from '../support.ts'

afterEach(() => {
  vi.restoreAllMocks()
})

describe('an append that is durable', () => {
  it('is acknowledged whatever becomes of its usage', async () => {
    const errors: unknown[] = []
    const { hw, stream } = await openEngine({ onBackgroundError: (error) => errors.push(error) })
    const failure = new Error('not recorded')
    vi.spyOn(Usage.prototype, 'appended').mockImplementation(() => {
      throw failure
    })
    expect(await stream.append('x')).toMatchObject({ end: { seqNum: 1 } })
    expect(errors).toEqual([failure])
    await hw.close()
  })

  it('is in the metrics for whoever has its ack', async () => {
    const { hw, clock, stream } = await openEngine()
    const start = Math.floor(clock.now() / 1000)
    const query = { set: 'append-throughput', start, end: start + 1 } as const
    for (const bytes of [9, 18]) {
      const metrics = await stream.append('x').then(() => hw.basin('basin').metrics(query))
      const express = metrics.find(({ name }) => name === 'express')
      expect(express?.kind === 'accumulation' && express.values[0]?.[1]).toBe(bytes)
    }
    expect((await hw.counters()).appends).toBe(2)
    await hw.close()
  })
})
