import { beforeEach, describe, expect, it } from 'vitest'
import {
  advanceTo,
  append,
  createBasin,
  createStream,
  DAY,
  deleteStream,
  HOUR,
  MINUTE,
  maintain,
  ofBasin,
  ofStream,
  openUsage,
  store,
  type TestUsage,
} from './support.ts'

const A = { basin: 'basin-one', stream: 'a' }
const B = { basin: 'basin-one', stream: 'b' }

let test: TestUsage

beforeEach(async () => {
  test = await openUsage()
  await createBasin(test, 'basin-one')
  await createStream(test, A)
  await createStream(test, B)
})

/** Trims everything and frees it without notifying the meter. */
async function trim(logId: string): Promise<readonly string[]> {
  const { session, clock } = test
  await store(test, logId, 1)
  const head = (await session.head(logId))!
  const point = head.tail.seqNum
  await session.append({
    logId,
    expected: { epoch: head.epoch, seqNum: point, appendId: head.appendId },
    block: {
      firstSeqNum: point,
      endSeqNum: point + 1,
      firstTimestamp: 0,
      lastTimestamp: 0,
      meteredBytes: 2,
      expiresAt: null,
      data: new Uint8Array(1),
    },
    head: {
      ...head,
      tail: { seqNum: point + 1, timestamp: 0 },
      appendId: `trim:${point}`,
      trimPoint: point,
      trims: [{ point, at: clock.now() }],
    },
  })
  const { logIds } = await session.reclaim({ now: clock.now(), trimmedBefore: clock.now(), blocksMax: 100 })
  return logIds
}

describe('the storage gauge of a stream', () => {
  it('has a value for each minute, and the current value for the current minute', async () => {
    await advanceTo(test, 2 * MINUTE + 30)
    await append(test, A, 100)
    await append(test, A, 10)
    await advanceTo(test, 4 * MINUTE + 5)
    await append(test, A, 1)
    await advanceTo(test, 6 * MINUTE + 5)
    await store(test, 'a', 1_000)
    expect(await ofStream(test, A, [0, HOUR / 10 + 100])).toEqual([
      [2 * MINUTE, 110],
      [3 * MINUTE, 110],
      [4 * MINUTE, 111],
      [5 * MINUTE, 111],
      [6 * MINUTE, 1_111],
    ])
    expect(await ofStream(test, A, [5 * MINUTE, 5 * MINUTE])).toEqual([[5 * MINUTE, 111]])
    expect(await ofStream(test, A, [5 * MINUTE + 10, 6 * MINUTE])).toEqual([[5 * MINUTE, 111]])
    expect(await ofStream(test, A, [6 * MINUTE + 5, 6 * MINUTE + 5])).toEqual([[6 * MINUTE, 1_111]])
    expect(await ofStream(test, A, [6 * MINUTE + 300, 6 * MINUTE + 300])).toEqual([])
  })

  it('falls when records are freed', async () => {
    await append(test, A, 100)
    await advanceTo(test, 3 * MINUTE)
    const changed = await trim('a')
    expect(changed).toEqual(['a'])
    test.usage.storedChanged(changed)
    await advanceTo(test, 5 * MINUTE)
    expect(await ofStream(test, A, [0, 5 * MINUTE])).toEqual([
      [0, 100],
      [MINUTE, 100],
      [2 * MINUTE, 100],
      [3 * MINUTE, 2],
      [4 * MINUTE, 2],
    ])
  })

  it('belongs to the stream that has the name now', async () => {
    await append(test, A, 100)
    await advanceTo(test, MINUTE)
    await deleteStream(test, A)
    expect(await ofStream(test, A, [0, MINUTE])).toEqual([])
    await createStream(test, A, 'another-log')
    await store(test, 'another-log', 7)
    test.usage.storedChanged(['another-log'])
    await advanceTo(test, 3 * MINUTE)
    expect(await ofStream(test, A, [0, 3 * MINUTE])).toEqual([
      [MINUTE, 7],
      [2 * MINUTE, 7],
    ])
  })

  it('is kept by hour after 3 days and by day after 40, while the stream exists', async () => {
    await advanceTo(test, 90 * MINUTE)
    await append(test, A, 5)
    await advanceTo(test, 100 * MINUTE)
    await append(test, A, 6)
    await advanceTo(test, DAY)
    await append(test, A, 7)

    await advanceTo(test, 10 * DAY)
    await maintain(test)
    const hours = await ofStream(test, A, [0, 2 * DAY])
    expect(hours).toHaveLength(47)
    expect(hours.slice(0, 2)).toEqual([
      [HOUR, 11],
      [2 * HOUR, 11],
    ])
    expect(hours.at(-1)).toEqual([47 * HOUR, 18])

    await advanceTo(test, 60 * DAY)
    await maintain(test)
    expect(await ofStream(test, A, [0, 3 * DAY])).toEqual([
      [0, 11],
      [DAY, 18],
      [2 * DAY, 18],
    ])

    for (const years of [1, 2, 3, 6]) {
      await advanceTo(test, years * 365 * DAY)
      await maintain(test)
      const minute = years * 365 * DAY - MINUTE
      expect(await ofStream(test, A, [minute, minute])).toEqual([[minute, 18]])
    }
  })
})

describe('the storage gauge of a basin', () => {
  it('has a value for each hour, and the current value for the current hour', async () => {
    await append(test, A, 10)
    await append(test, B, 5)
    await maintain(test)
    await advanceTo(test, 2 * HOUR)
    await maintain(test)
    await append(test, A, 100)
    await advanceTo(test, 3 * HOUR)
    await maintain(test)
    await advanceTo(test, 5 * HOUR)
    await maintain(test)
    await advanceTo(test, 5 * HOUR + 10)
    await store(test, 'b', 1_000)
    expect(await ofBasin(test, 'basin-one', 'storage', [0, 6 * HOUR - 3_500])).toEqual({
      metered_size: [
        [HOUR, 15],
        [2 * HOUR, 115],
        [3 * HOUR, 115],
        [4 * HOUR, 115],
        [5 * HOUR, 1_115],
      ],
    })
    expect(await ofBasin(test, 'basin-one', 'storage', [5 * HOUR + 10, 5 * HOUR + 10], 'hour')).toEqual({
      metered_size: [[5 * HOUR, 1_115]],
    })
    expect(await ofBasin(test, 'basin-one', 'storage', [4 * HOUR, 5 * HOUR])).toEqual({
      metered_size: [[4 * HOUR, 115]],
    })
  })

  it('has the value of the end of an hour, also if it is measured later', async () => {
    await append(test, A, 100)
    await advanceTo(test, HOUR)
    await maintain(test)
    await append(test, A, 11)
    await advanceTo(test, 2 * HOUR + 10)
    const of = async () => (await ofBasin(test, 'basin-one', 'storage', [0, 2 * HOUR])).metered_size
    expect(await of()).toEqual([
      [0, 100],
      [HOUR, 111],
    ])
    // The value does not change any more.
    await append(test, A, 900)
    await advanceTo(test, 3 * HOUR - 10)
    expect(await of()).toEqual([
      [0, 100],
      [HOUR, 111],
    ])
  })

  it('is zero before the basin existed', async () => {
    await advanceTo(test, HOUR + 10)
    await createBasin(test, 'basin-two')
    await maintain(test)
    await advanceTo(test, 2 * HOUR)
    await maintain(test)
    await advanceTo(test, 3 * HOUR)
    expect(await ofBasin(test, 'basin-two', 'storage', [0, 3 * HOUR])).toEqual({
      metered_size: [
        [HOUR, 0],
        [2 * HOUR, 0],
      ],
    })
  })

  it('ends when the basin is deleted', async () => {
    await append(test, A, 10)
    await advanceTo(test, HOUR)
    await maintain(test)
    await deleteStream(test, A)
    await deleteStream(test, B)
    await test.session.commit([{ kind: 'delete', collection: 'basins', key: 'basin-one' }])
    await advanceTo(test, 5 * HOUR)
    await maintain(test)
    expect(await ofBasin(test, 'basin-one', 'storage', [0, 5 * HOUR])).toEqual({ metered_size: [[0, 10]] })
  })

  it('falls when streams are deleted', async () => {
    await append(test, A, 10)
    await append(test, B, 5)
    await advanceTo(test, HOUR)
    await maintain(test)
    await deleteStream(test, A)
    await advanceTo(test, 2 * HOUR)
    await maintain(test)
    expect(await ofBasin(test, 'basin-one', 'storage', [0, 2 * HOUR])).toEqual({
      metered_size: [
        [0, 15],
        [HOUR, 5],
      ],
    })
  })

  it('is kept by day after 40 days', async () => {
    for (let hour = 1; hour <= 50; hour++) {
      await advanceTo(test, hour * HOUR)
      await maintain(test)
      await store(test, 'a', 1)
    }
    await advanceTo(test, 60 * DAY)
    await maintain(test)
    expect(await ofBasin(test, 'basin-one', 'storage', [0, 3 * DAY])).toEqual({
      metered_size: [
        [0, 23],
        [DAY, 47],
        [2 * DAY, 49],
      ],
    })
  })
})
