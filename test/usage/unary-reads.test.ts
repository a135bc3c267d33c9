import { describe, expect, it } from 'vitest'
import type { VirtualClock } from '../../adapters/testing/index.ts'
import type { Engine } from '../../src/index.ts'
import { StorageFailure } from '../../src/storage/errors.ts'
import { aesOfNode, key, openEncrypted } from '../engine/encryption/support.ts'
import { openEngine, testStorage, wrapped } from '../support/index.ts'

/** The bytes and requests counted for a basin. */
async function readsOf(hw: Engine, clock: VirtualClock, basin: string) {
  const now = clock.now()
  const range = { start: now - 60_000, end: now + 60_000, interval: 'day' } as const
  const [bytes] = await hw.basin(basin).metrics({ set: 'read-throughput', ...range })
  const [unary] = await hw.basin(basin).metrics({ set: 'read-ops', ...range })
  return [bytes, unary].map((metric) => (metric?.kind === 'accumulation' ? metric.values[0]?.[1] : undefined))
}

describe('a unary read', () => {
  it('counts once for several blocks, with all their bytes', async () => {
    const storage = wrapped(testStorage(), {}, (session) => ({
      read: async (logId, range) => session.read(logId, { ...range, bytesMax: 1 }),
    }))
    const { hw, clock, stream } = await openEngine({ storage })
    for (const body of ['a', 'bc', 'def']) await stream.append(body)
    await stream.readBatch({ seqNum: 0 })
    expect(await readsOf(hw, clock, 'basin')).toEqual([8 * 3 + 6, 1])
    expect(await hw.counters()).toMatchObject({ readBatches: 1, readBytes: 30, unaryReads: 1 })
    await hw.close()
  })

  it('that waits for an append counts its bytes', async () => {
    const { hw, clock, stream } = await openEngine()
    const reading = stream.readBatch({ seqNum: 0, waitMs: 10_000 })
    await clock.settle()
    await stream.append('abc')
    await reading
    expect(await readsOf(hw, clock, 'basin')).toEqual([11, 1])
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
    const { hw, clock, stream } = await openEngine({ storage })
    for (const body of ['a', 'b', 'c']) await stream.append(body)
    readsLeft = 2
    await expect(stream.readBatch({ seqNum: 0 })).rejects.toMatchObject({ code: 'storage' })
    expect(await readsOf(hw, clock, 'basin')).toEqual([undefined, undefined])
    await hw.close()
  })

  it('whose key is wrong for its second append counts nothing', async () => {
    const { hw, clock, with: as } = await openEncrypted(aesOfNode)
    await as(key(1)).append('mine')
    await as(key(2)).append('not mine')
    await expect(as(key(1)).readBatch({ seqNum: 0 })).rejects.toMatchObject({ code: 'decryption_failed' })
    expect(await readsOf(hw, clock, 'encrypted')).toEqual([undefined, undefined])
    await hw.close()
  })
})
