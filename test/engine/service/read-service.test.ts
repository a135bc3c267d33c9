import { describe, expect, it, vi } from 'vitest'
import type { ReadRange } from '../../../src/storage/contract.ts'
import { StorageFailure } from '../../../src/storage/errors.ts'
import { bodies, deferred, openEngine, testStorage, wrapped } from '../../support/index.ts'

describe('reads', () => {
  it('a long poll with records does not wait for those after expired ones', async () => {
    const { hw, clock, stream } = await openEngine()
    const basin = hw.basin('basin')
    await basin.stream('stream').reconfigure({ retentionPolicy: 'infinite' })
    await stream.append('kept')
    await basin.stream('stream').reconfigure({ retentionPolicy: { ageSeconds: 1 } })
    await stream.append('expires')
    await clock.advance('5m')
    let result: string[] | undefined
    const done = stream.readBatch({ seqNum: 0, waitMs: 60_000 }).then((batch) => {
      result = bodies(batch)
    })
    await clock.settle()
    const atOnce = result
    await clock.advance('2m')
    await done
    expect(result).toEqual(['kept'])
    expect(atOnce).toEqual(['kept'])
  })

  it('lastSeqNum is the number of the last record of the batch', async () => {
    const { hw, clock, stream } = await openEngine()
    const basin = hw.basin('basin')
    await basin.stream('stream').reconfigure({ retentionPolicy: 'infinite' })
    await stream.append('kept')
    await basin.stream('stream').reconfigure({ retentionPolicy: { ageSeconds: 1 } })
    await stream.append('expires')
    await clock.advance('2s')
    const batch = await stream.readBatch({ seqNum: 0 }, { as: 'bytes' })
    expect(batch.records.map(({ seqNum }) => seqNum)).toEqual([0])
    expect(batch.lastSeqNum).toBe(0)
  })

  it('a read of a few bytes does not read a MiB from the storage', async () => {
    let blocks = 0
    const storage = wrapped(testStorage(), {}, (session) => ({
      read: async (logId: string, range: ReadRange) => {
        const found = await session.read(logId, range)
        blocks += found.length
        return found
      },
    }))
    const { stream } = await openEngine({ storage })
    await Promise.all(Array.from({ length: 5_000 }, () => stream.append('x')))
    blocks = 0
    expect((await stream.readBatch({ seqNum: 0, count: 1 })).count).toBe(1)
    expect((await stream.readBatch({ seqNum: 0, bytes: 9 })).count).toBe(1)
    expect(blocks).toBe(2)
  })

  it('a cursor that is closed while it reads resolves to undefined, even if the storage fails', async () => {
    let hold = false
    const gate = deferred()
    const storage = wrapped(testStorage(), {}, (session) => ({
      read: async (logId: string, range: ReadRange) => {
        if (!hold) return session.read(logId, range)
        await gate.promise
        throw new StorageFailure('io', 'failed', { nothingWritten: true })
      },
    }))
    const { clock, stream } = await openEngine({ storage })
    for (let i = 0; i < 3; i++) await stream.append([new Uint8Array(1_000_000)])
    const cursor = (await stream.openCursor({ seqNum: 0 }, {}))!
    await cursor.next()
    await cursor.next()
    hold = true
    const pending = Promise.resolve(cursor.next()).then(
      (event) => event,
      (error) => `rejected: ${error.code}`,
    )
    await clock.settle()
    cursor.close()
    gate.resolve()
    expect(await pending).toBe(undefined)
  })

  it('followers that have caught up receive bursts of appends without reading the storage', async () => {
    let reads = 0
    const storage = wrapped(testStorage(), {}, (session) => ({
      read: (logId: string, range: ReadRange) => {
        reads++
        return session.read(logId, range)
      },
    }))
    const { clock, stream } = await openEngine({ storage })
    let received = 0
    for (let i = 0; i < 3; i++) {
      stream.follow({ seqNum: 0 }).records$.subscribe({ next: () => received++, error: () => {} })
    }
    await stream.append('first')
    await vi.waitUntil(() => received === 3)
    await clock.settle()
    reads = 0
    // As many appends at a time as are kept for followers.
    for (let i = 0; i < 5; i++) await Promise.all(Array.from({ length: 100 }, () => stream.append('x')))
    await vi.waitUntil(() => received === 3 * 501)
    expect(reads).toBe(0)
  })

  it('closing the engine cancels the timers of a follower whose consumer is busy', async () => {
    const { hw, clock, stream } = await openEngine()
    const iterator = stream.follow({ seqNum: 0, waitMs: 3_600_000 })[Symbol.asyncIterator]()
    await stream.append('0')
    await iterator.next()
    const waiting = iterator.next()
    await clock.settle()
    await stream.append('1')
    await waiting
    // The consumer is busy with the batch.
    await hw.close()
    expect({ timers: clock.pending, openReads: hw.stats().openReads }).toEqual({ timers: 0, openReads: 0 })
  })

  it('a timer can unsubscribe in the middle of a long history in memory', async () => {
    const { stream } = await openEngine()
    for (let i = 0; i < 200; i++) await stream.append(Array.from({ length: 1000 }, () => 'x'))
    let batches = 0
    let stopped = false
    await new Promise<void>((resolve) => {
      const subscription = stream.read({ seqNum: 0, count: 200_000 }).batches$.subscribe({
        next: () => batches++,
        complete: resolve,
      })
      setImmediate(() => {
        stopped = !subscription.closed
        subscription.unsubscribe()
        resolve()
      })
    })
    expect(stopped).toBe(true)
    expect(batches).toBeLessThan(200)
  })

  it('the signal ends an iteration at once, even while the read is being opened', async () => {
    let hold = false
    const gate = deferred()
    const storage = wrapped(testStorage(), {}, (session) => ({
      head: async (logId: string) => {
        if (hold) await gate.promise
        return session.head(logId)
      },
    }))
    const { hw, clock, stream } = await openEngine({ storage })
    await stream.append('x')
    hold = true
    const abort = new AbortController()
    let outcome: unknown
    const iterator = stream.follow({ seqNum: 0 }, { signal: abort.signal })[Symbol.asyncIterator]()
    iterator.next().then(
      () => (outcome = 'ended'),
      (error) => (outcome = error.name),
    )
    let poll: unknown
    stream.readBatch({ seqNum: 0, waitMs: 60_000 }, { signal: abort.signal }).then(
      () => (poll = 'ended'),
      (error) => (poll = error.name),
    )
    await clock.settle()
    abort.abort()
    await clock.settle()
    const atOnce = { outcome, poll }
    hold = false
    gate.resolve()
    await clock.settle()
    expect(hw.stats().openReads).toBe(0)
    expect(atOnce).toEqual({ outcome: 'AbortError', poll: 'AbortError' })
  })

  it('timestamps are whole milliseconds on any clock', async () => {
    const { clock, stream } = await openEngine()
    await clock.advance('1.5ms')
    const ack = await stream.append('x')
    const [record] = (await stream.readBatch({ seqNum: 0 }, { as: 'bytes' })).records
    expect(record!.timestamp).toBe(ack.start.timestamp)
    expect((await stream.readBatch({ timestamp: ack.start.timestamp })).count).toBe(1)
  })
})
