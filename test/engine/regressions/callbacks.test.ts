import { describe, expect, it } from 'vitest'
import { open, type Storage, StorageFailure } from '../../../src/index.ts'
import { testClock } from '../../test-clock.ts'
import { testStorage } from '../../test-storage.ts'
import { openEngine } from '../support.ts'

describe('callbacks', () => {
  it('calling back into the engine from subscribers does no harm', async () => {
    const { hw, clock, stream } = await openEngine()
    const session = await stream.appendSession()
    const seen: number[] = []
    const ended: string[] = []
    session.acks$.subscribe({
      next: (ack) => {
        if (ack.end.seqNum < 3) void session.submit('again')
        else void session.close()
      },
      complete: () => ended.push('acks'),
    })
    const sub = stream.read({ seqNum: 0 }).records$.subscribe({
      next: ({ seqNum }) => {
        seen.push(seqNum)
        if (seqNum === 2) sub.unsubscribe()
      },
    })
    await session.submit('a')
    await clock.settle()
    stream.read({ seqNum: 0 }).records$.subscribe({
      next: () => void hw.close(),
      error: (error) => ended.push(error.code),
    })
    await hw.close()
    expect({ seen, ended, stats: hw.stats().openReads, timers: clock.pending }).toEqual({
      seen: [0, 1, 2],
      ended: ['acks', 'unavailable'],
      stats: 0,
      timers: 0,
    })
  })

  it('an onBackgroundError that throws is no unhandled rejection', async () => {
    const rejections: unknown[] = []
    const listener = (error: unknown) => rejections.push(error)
    const existing = process.listeners('unhandledRejection')
    process.removeAllListeners('unhandledRejection')
    process.on('unhandledRejection', listener)
    try {
      const inner = testStorage()
      const storage: Storage = {
        manifest: inner.manifest,
        async open(context) {
          const session = await inner.open(context)
          session.reclaim = async () => {
            throw new StorageFailure('io', 'x', { nothingWritten: true })
          }
          return session
        },
      }
      const clock = testClock({ now: 1 })
      const hw = await open({
        storage,
        clock,
        onBackgroundError: () => {
          throw new Error('from the callback')
        },
      })
      await clock.settle()
      await clock.advance('2m')
      await hw.close().catch(() => {})
      await clock.settle()
      expect(rejections).toEqual([])
    } finally {
      process.removeListener('unhandledRejection', listener)
      for (const one of existing) process.on('unhandledRejection', one as never)
    }
  })
})
