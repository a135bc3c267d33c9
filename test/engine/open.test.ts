import { afterEach, describe, expect, it, vi } from 'vitest'
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
    it('waits for appends in flight, rejects later calls, and leaves no timer', async () => {
      const storage = gated(testStorage())
      engine = await openEngine({ storage })
      const { stream, hw, clock } = engine
      storage.holding = true
      const append = outcomeOf(stream.append('a'))
      await clock.settle()
      let closed = false
      const closing = hw.close().then(() => {
        closed = true
      })
      await clock.settle()
      expect(closed).toBe(false)
      storage.release()
      await closing
      expect(await append).toBe('ok')
      expect(await outcomeOf(stream.append('b'))).toBe('closed')
      expect(await outcomeOf(stream.checkTail())).toBe('closed')
      expect(clock.pending).toBe(0)
    })

    it('waits for an append whose stream is still being loaded', async () => {
      const storage = testStorage()
      const { hw: first, clock } = await openEngine({ storage })
      const loading = deferred()
      let appends = 0
      let isLoading = false
      const hw = await open({
        clock,
        storage: wrapped(storage, {}, (session) => ({
          async head(logId) {
            isLoading = true
            await loading.promise
            return session.head(logId)
          },
          append(request) {
            appends++
            return session.append(request)
          },
        })),
      })
      const append = outcomeOf(hw.basin('basin').stream('stream').append('a'))
      await vi.waitUntil(() => isLoading)
      const closing = hw.close()
      loading.resolve()
      await closing
      expect([await append, appends]).toEqual(['ok', 1])
      await first.close()
    })

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

  it('keeps nothing of an engine that is closed', async () => {
    const { signal } = new AbortController()
    const added = vi.spyOn(signal, 'addEventListener')
    const removed = vi.spyOn(signal, 'removeEventListener')
    const kept = () => added.mock.calls.length - removed.mock.calls.length
    const { hw } = await openEngine({ signal })
    expect(kept()).toBe(1)
    await hw.close()
    expect(kept()).toBe(0)
  })

  it('reports a failure to close as one of background work', async () => {
    const errors: unknown[] = []
    const storage = wrapped(testStorage(), {}, () => ({
      close: () => Promise.reject(new StorageFailure('io', 'x', { nothingWritten: true })),
    }))
    const ending = new AbortController()
    await open({ storage, signal: ending.signal, onBackgroundError: (error) => errors.push(error) })
    ending.abort(enough)
    await vi.waitUntil(() => errors.length > 0)
    expect(errors).toMatchObject([{ code: 'storage' }])
  })

  it('must be a signal', async () => {
    const options = { storage: testStorage(), signal: {} as AbortSignal }
    await expect(open(options)).rejects.toMatchObject({ code: 'invalid', field: 'signal' })
  })
})
