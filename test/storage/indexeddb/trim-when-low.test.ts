import { Subject } from 'rxjs'
import { afterEach, describe, expect, it } from 'vitest'
import {
  type IndexedDbStorage,
  type LowSpace,
  trimWhenLow,
} from '../../../adapters/storage/indexeddb/index.ts'
import { memory } from '../../../adapters/storage/memory/index.ts'
import { type VirtualClock, virtualClock } from '../../../adapters/testing/index.ts'
import { type Engine, open, type Stream } from '../../../src/index.ts'

/** The metered bytes of a record with this body. */
const RECORD_BYTES = 1000
/** It trims in steps of so many. */
const BATCH_RECORDS = 100
const BODY = 'x'.repeat(RECORD_BYTES - 8)

let hw: Engine
let clock: VirtualClock
let stop: () => void = () => {}
afterEach(async () => {
  stop()
  await hw.close()
})

/** Two streams with interleaved records, and a browser with a given usage. */
async function lowOnSpace(records: number) {
  clock = virtualClock()
  hw = await open({ storage: memory(), clock })
  const streams = ['a', 'b'].map((name) => hw.basin('basin').stream(name))
  for (let left = records / 2; left > 0; left -= BATCH_RECORDS) {
    for (const stream of streams) {
      await stream.append(Array.from({ length: Math.min(left, BATCH_RECORDS) }, () => BODY))
      await clock.advance(1)
    }
  }
  const low = new Subject<LowSpace>()
  const points: string[] = []
  const errors: unknown[] = []
  const tell = async (
    usedBytes: number | undefined,
    quotaBytes: number | undefined,
    isFull = false,
    writtenBytes = 0,
  ) => {
    low.next({ usedBytes, quotaBytes, persisted: false, isFull, writtenBytes })
    await clock.settle()
  }
  const options = {
    streams: () => streams,
    onTrim: (stream: Stream, point: number) => points.push(`${stream.name} ${point}`),
    onError: (error: unknown) => errors.push(error),
    clock,
  }
  const storage = { lowSpace$: low.asObservable() } as IndexedDbStorage
  return { storage, streams, options, points, errors, tell }
}

const first = async (stream: Stream) =>
  (await stream.readBatch({ seqNum: 0, count: 1 }, { as: 'bytes' })).records[0]!.seqNum

describe('trimWhenLow', () => {
  it('trims the oldest records of all streams, as many as necessary', async () => {
    const { storage, streams, options, points, tell } = await lowOnSpace(2000)
    stop = trimWhenLow(storage, { ...options, freeShare: 0.5 })
    // 800 records have to go.
    await tell(1800 * RECORD_BYTES, 2000 * RECORD_BYTES)
    // Code that reads is loaded first.
    await expect.poll(() => points.sort()).toEqual(['a 400', 'b 400'])
    expect(await Promise.all(streams.map(first))).toEqual([400, 400])
  })

  it('trims nothing while enough space is free', async () => {
    const { storage, options, points, tell } = await lowOnSpace(10)
    stop = trimWhenLow(storage, { ...options, freeShare: 0.5 })
    await tell(1000, 2000)
    expect(points).toEqual([])
  })

  it('counts trimmed records that the browser has not freed yet', async () => {
    const { storage, options, points, tell } = await lowOnSpace(2000)
    stop = trimWhenLow(storage, { ...options, freeShare: 0.5 })
    await tell(1400 * RECORD_BYTES, 2000 * RECORD_BYTES)
    expect(points.sort()).toEqual(['a 200', 'b 200'])
    await tell(1400 * RECORD_BYTES, 2000 * RECORD_BYTES)
    expect(points.length).toBe(2)
    await tell(1600 * RECORD_BYTES, 2000 * RECORD_BYTES)
    expect(points.slice(2).sort()).toEqual(['a 300', 'b 300'])
  })

  it('trims only as much as was written while the estimate does not fall', async () => {
    const { storage, options, points, tell } = await lowOnSpace(2000)
    stop = trimWhenLow(storage, { ...options, freeShare: 0.5 })
    for (const written of [0, 200, 400]) {
      await tell((1200 + written) * RECORD_BYTES, 2000 * RECORD_BYTES, false, written * RECORD_BYTES)
      await clock.advance('1h')
    }
    const trimmedTo = (count: number) => [`a ${count}`, `b ${count}`]
    expect(points).toEqual([...trimmedTo(100), ...trimmedTo(200), ...trimmedTo(300)])
  })

  it('trims all records if necessary, and skips empty streams', async () => {
    const { storage, options, points, tell } = await lowOnSpace(10)
    const empty = await hw.basin('basin').ensureStream('empty')
    expect(empty).toBeDefined()
    const streams = async () => [hw.basin('basin').stream('empty'), ...options.streams()]
    stop = trimWhenLow(storage, { ...options, streams })
    await tell(10_000_000, 10_000_000)
    expect(points.sort()).toEqual(['a 5', 'b 5'])
    await tell(10_000_000, 10_000_000)
    // The trim commands remain.
    expect(points.slice(2).sort()).toEqual(['a 6', 'b 6'])
  })

  it('uses the used space as the quota after a rejected append', async () => {
    const { storage, options, points, tell } = await lowOnSpace(2000)
    stop = trimWhenLow(storage, { ...options, freeShare: 0.2 })
    await tell(2000 * RECORD_BYTES, 1_000_000 * RECORD_BYTES, true)
    expect(points.sort()).toEqual(['a 200', 'b 200'])
  })

  it('reports errors, and tries again the next time', async () => {
    const { storage, options, points, errors, tell } = await lowOnSpace(200)
    let asked = 0
    const failing = {
      ...options,
      streams: () => {
        if (asked++ === 0) throw new Error('not now')
        return options.streams()
      },
    }
    stop = trimWhenLow(storage, failing)
    await tell(10_000, 10_000)
    expect(errors).toEqual([new Error('not now')])
    await tell(10_000, 10_000)
    expect(points.length).toBeGreaterThan(0)
  })

  it('stops on request', async () => {
    const { storage, options, points, tell } = await lowOnSpace(10)
    trimWhenLow(storage, options)()
    await tell(10_000, 10_000)
    expect(points).toEqual([])
  })

  it.each([0, 1, -1, Number.NaN])('rejects a share of %d', async (freeShare) => {
    const { storage, options } = await lowOnSpace(0)
    expect(() => trimWhenLow(storage, { ...options, freeShare })).toThrow(
      expect.objectContaining({ code: 'invalid' }),
    )
  })
})
