import { afterEach, describe, expect, it } from 'vitest'
import { memory } from '../../adapters/storage/memory/index.ts'
import { open, type Storage } from '../../src/index.ts'
import { StorageFailure } from '../../src/storage/errors.ts'
import {
  deferred,
  gated,
  onEveryKindOfStorage,
  openEngine,
  outcomeOf,
  type TestEngine,
  testClock,
  testStorage,
  wrapped,
} from '../support/index.ts'

let engine: TestEngine | undefined
afterEach(async () => {
  await engine?.hw.close()
  engine = undefined
})

describe('callbacks', () => {
  it('subscribers may call the engine', async () => {
    const { hw, clock, stream } = await openEngine()
    const session = await stream.appendSession()
    const received: number[] = []
    const ended: string[] = []
    session.acks$.subscribe({
      next: (ack) => {
        if (ack.end.seqNum < 3) void session.submit('again')
        else void session.close()
      },
      complete: () => ended.push('acks'),
    })
    const sub = stream.follow({ seqNum: 0 }, { as: 'bytes' }).records$.subscribe({
      next: ({ seqNum }) => {
        received.push(seqNum)
        if (seqNum === 2) sub.unsubscribe()
      },
    })
    await session.submit('a')
    await clock.settle()
    stream.follow({ seqNum: 0 }, { as: 'bytes' }).records$.subscribe({
      next: () => void hw.close(),
      error: (error) => ended.push(error.code),
    })
    await hw.close()
    expect({ seen: received, ended, stats: hw.stats().openReads, timers: clock.pending }).toEqual({
      seen: [0, 1, 2],
      ended: ['acks', 'closed'],
      stats: 0,
      timers: 0,
    })
  })

  it('closing leaves no timer', async () => {
    engine = await openEngine()
    const { stream, hw, clock } = engine
    await stream.append('a')
    await hw.close()
    expect(clock.pending).toBe(0)
  })

  it('an onBackgroundError that throws causes no unhandled rejection', async () => {
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
      for (const listener of existing) process.on('unhandledRejection', listener as never)
    }
  })
})

onEveryKindOfStorage(() =>
  describe('closing', () => {
    it('rejects with the cause when the storage cannot be opened', async () => {
      engine = await openEngine()
      const storage = {
        ...memory(),
        open: () =>
          Promise.reject(new StorageFailure('blocked', 'held by another', { nothingWritten: true })),
      }
      expect(await outcomeOf(open({ storage }))).toBe('storage')
    })
  }),
)

describe('the signal of `open`', () => {
  const enough = new Error('enough')

  it('closes the engine, which settles what is in flight', async () => {
    const storage = gated(testStorage())
    const ending = new AbortController()
    engine = await openEngine({ storage, signal: ending.signal })
    const { stream, hw, clock } = engine
    storage.holding = true
    const append = outcomeOf(stream.append('a'))
    await clock.settle()
    ending.abort(enough)
    expect(await outcomeOf(stream.append('b'))).toBe('closed')
    storage.release()
    await hw.close()
    expect([await append, clock.pending]).toEqual(['ok', 0])
  })

  it('rejects before the storage is opened, if it has aborted', async () => {
    let opened = 0
    const inner = testStorage()
    const storage: Storage = {
      manifest: inner.manifest,
      open(context) {
        opened++
        return inner.open(context)
      },
    }
    await expect(open({ storage, signal: AbortSignal.abort(enough) })).rejects.toBe(enough)
    expect(opened).toBe(0)
  })

  it('rejects while the storage opens, and closes what still opens', async () => {
    const opening = deferred()
    const closed = deferred()
    const inner = testStorage()
    const storage = wrapped(inner, {}, (session) => ({
      async close() {
        await session.close()
        closed.resolve()
      },
    }))
    const slow: Storage = {
      manifest: storage.manifest,
      async open(context) {
        await opening.promise
        return storage.open(context)
      },
    }
    const ending = new AbortController()
    const opened = open({ storage: slow, signal: ending.signal })
    ending.abort(enough)
    await expect(opened).rejects.toBe(enough)
    opening.resolve()
    await closed.promise
  })

  it('must be a signal', async () => {
    const options = { storage: testStorage(), signal: {} as AbortSignal }
    await expect(open(options)).rejects.toMatchObject({ code: 'invalid', field: 'signal' })
  })
})
