import { describe, expect, it } from 'vitest'
import type { Engine } from '../../src/index.ts'
import type { Metric, MetricsQuery } from '../../src/model/metrics.ts'
import { StorageFailure } from '../../src/storage/errors.ts'
import { usageMetrics } from '../../src/usage/index.ts'
import { aesOfNode, key, openEncrypted } from '../engine/encryption/support.ts'
import { openEngine, testClock, testStorage, wrapped } from '../support/index.ts'
import { HOUR, START } from './support.ts'

/** What was counted in all days, by metric. */
function totalsOf(metrics: readonly Metric[]): Record<string, number> {
  const accumulations = metrics.filter((metric) => metric.kind === 'accumulation')
  return Object.fromEntries(
    accumulations.map(({ name, values }) => [name, values.reduce((sum, [, value]) => sum + value, 0)]),
  )
}

const DAY = { start: 1_000_000, end: 1_060_000, interval: 'day' } as const

async function ofBasin(hw: Engine, basin: string, set: MetricsQuery['set']): Promise<Record<string, number>> {
  return totalsOf(await hw.basin(basin).metrics({ set: set as 'read-ops', ...DAY }))
}

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
    const { hw, stream } = await openEngine()
    for (const bytes of [9, 18]) {
      await stream.append('x')
      expect(await ofBasin(hw, 'basin', 'append-throughput')).toEqual({ standard: 0, express: bytes })
    }
    expect((await hw.counters()).appends).toBe(2)
    await hw.close()
  })
})

describe('ensuring a basin or stream', () => {
  it('counts as a creation if it creates, else as a reconfiguration', async () => {
    // It creates a basin and a stream.
    const { hw } = await openEngine()
    const basin = hw.basin('basin')
    for (let i = 0; i < 4; i++) await hw.ensureBasin('basin')
    await hw.ensureBasin('basin', { createStreamOnAppend: true })
    for (let i = 0; i < 2; i++) await basin.ensureStream('stream')
    await basin.ensureStream('stream', { storageClass: 'standard' })
    await basin.ensureStream('stream', { storageClass: 'express' })
    const ofAccount = totalsOf(await hw.metrics({ set: 'account-ops', ...DAY }))
    expect(ofAccount).toEqual({ 'create-basin': 1, 'reconfigure-basin': 5 })
    const ofTheBasin = await ofBasin(hw, 'basin', 'basin-ops')
    expect(ofTheBasin).toEqual({ 'create-stream': 1, 'reconfigure-stream': 4 })
    await hw.close()
  })
})

describe('a basin that an engine deletes', () => {
  it('holds nothing once it is gone', async () => {
    const { hw, clock } = await openEngine({ clock: testClock() })
    const basin = hw.basin('basin')
    await basin.stream('stream').append('x'.repeat(92))
    await clock.advance('1h')
    await clock.advance('2m')
    await basin.delete()
    await clock.advance('3m')
    expect((await hw.listBasins()).items).toEqual([])
    const range = { start: START * 1000, end: (START + HOUR + 300) * 1000 }
    expect(await basin.metrics({ set: 'storage', ...range })).toMatchObject([
      {
        values: [
          [START * 1000, 100],
          [(START + HOUR) * 1000, 0],
        ],
      },
    ])
    await hw.close()
  })
})

describe('a unary read', () => {
  /** The bytes and requests counted for a basin. */
  async function readsOf(hw: Engine, basin: string) {
    const { read_bytes } = await ofBasin(hw, basin, 'read-throughput')
    return [read_bytes, (await ofBasin(hw, basin, 'read-ops')).unary]
  }

  it('counts once for several blocks, with all their bytes', async () => {
    const storage = wrapped(testStorage(), {}, (session) => ({
      read: async (logId, range) => session.read(logId, { ...range, bytesMax: 1 }),
    }))
    const { hw, stream } = await openEngine({ storage })
    for (const body of ['a', 'bc', 'def']) await stream.append(body)
    await stream.readBatch({ seqNum: 0 })
    expect(await readsOf(hw, 'basin')).toEqual([8 * 3 + 6, 1])
    expect(await hw.counters()).toMatchObject({ readBatches: 1, readBytes: 30, unaryReads: 1 })
    await hw.close()
  })

  it('at the tail counts as one unary read alone', async () => {
    const { hw, stream } = await openEngine()
    await stream.append('a')
    await stream.readBatch({ seqNum: 1 })
    expect(await hw.counters()).toMatchObject({ unaryReads: 1, streamingReads: 0 })
    await hw.close()
  })

  it('that waits for an append counts its bytes', async () => {
    const { hw, clock, stream } = await openEngine()
    const reading = stream.readBatch({ seqNum: 0, waitMs: 10_000 })
    await clock.settle()
    await stream.append('abc')
    await reading
    expect(await readsOf(hw, 'basin')).toEqual([11, 1])
    await hw.close()
  })

  it('that fails half way counts nothing', async () => {
    let readsLeft = Number.POSITIVE_INFINITY
    const storage = wrapped(testStorage(), {}, (session) => ({
      read: async (logId, range) => {
        if (readsLeft-- <= 0) throw new StorageFailure('io', 'away', { nothingWritten: true })
        return session.read(logId, { ...range, bytesMax: 1 })
      },
    }))
    const { hw, stream } = await openEngine({ storage })
    for (const body of ['a', 'b', 'c']) await stream.append(body)
    readsLeft = 2
    await expect(stream.readBatch({ seqNum: 0 })).rejects.toMatchObject({ code: 'storage' })
    expect(await readsOf(hw, 'basin')).toEqual([0, 0])
    await hw.close()
  })

  it('whose key is wrong for its second append counts nothing', async () => {
    const { hw, with: as } = await openEncrypted(aesOfNode)
    await as(key(1)).append('mine')
    await as(key(2)).append('not mine')
    await expect(as(key(1)).readBatch({ seqNum: 0 })).rejects.toMatchObject({ code: 'decryption_failed' })
    expect(await readsOf(hw, 'encrypted')).toEqual([0, 0])
    await hw.close()
  })
})
