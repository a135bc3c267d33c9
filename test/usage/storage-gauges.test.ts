import { beforeEach, describe, expect, it } from 'vitest'
import {
  advanceTo,
  append,
  createBasin,
  createStream,
  DAY,
  deleteBasin,
  deleteStream,
  freeRecords,
  HOUR,
  MINUTE,
  ofBasin,
  ofStream,
  openUsage,
  store,
  type TestUsage,
  upkeep,
} from './support.ts'

const A = { basin: 'basin-one', stream: 'a' }
const B = { basin: 'basin-one', stream: 'b' }

let test: TestUsage

async function open(options: { started?: boolean } = {}): Promise<void> {
  test = await openUsage(options)
  await createBasin(test, 'basin-one')
  await createStream(test, A)
  await createStream(test, B)
}

async function ofBasinOne(range: readonly [from: number, to: number]) {
  return (await ofBasin(test, 'basin-one', 'storage', range)).metered_size
}

/** Does what is due at the beginning of an hour. */
async function beginHour(hour: number): Promise<void> {
  await advanceTo(test, hour * HOUR)
  await upkeep(test)
}

describe('the storage gauge of a stream', () => {
  beforeEach(() => open({ started: true }))

  it('has a value for each minute, and the current value for the current minute', async () => {
    await advanceTo(test, 2 * MINUTE + 30)
    await append(test, A, 100)
    await append(test, A, 10)
    await advanceTo(test, 4 * MINUTE + 5)
    await append(test, A, 1)
    await advanceTo(test, 6 * MINUTE + 5)
    await store(test, 'a', 1_000)
    expect(await ofStream(test, A, [0, HOUR / 10 + 100])).toEqual('2m:110 3m:110 4m:111 5m:111 6m:1111')
    expect(await ofStream(test, A, [5 * MINUTE, 5 * MINUTE])).toEqual('5m:111')
    expect(await ofStream(test, A, [5 * MINUTE + 10, 6 * MINUTE])).toEqual('5m:111')
    expect(await ofStream(test, A, [6 * MINUTE + 5, 6 * MINUTE + 5])).toEqual('6m:1111')
    expect(await ofStream(test, A, [6 * MINUTE + 300, 6 * MINUTE + 300])).toBe('')
  })

  it('falls when records are freed', async () => {
    await append(test, A, 100)
    await advanceTo(test, 3 * MINUTE)
    test.usage.storedChanged(await freeRecords(test, 'a'))
    await advanceTo(test, 5 * MINUTE)
    expect(await ofStream(test, A, [0, 5 * MINUTE])).toEqual('0:100 1m:100 2m:100 3m:2 4m:2')
  })

  it('belongs to the stream that has the name now', async () => {
    await append(test, A, 100)
    await advanceTo(test, MINUTE)
    await deleteStream(test, A)
    expect(await ofStream(test, A, [0, MINUTE])).toBe('')
    await createStream(test, A, 'another-log')
    await store(test, 'another-log', 7)
    test.usage.storedChanged(['another-log'])
    await advanceTo(test, 3 * MINUTE)
    expect(await ofStream(test, A, [0, 3 * MINUTE])).toEqual('1m:7 2m:7')
  })
})

describe('the storage gauge of an old stream', () => {
  beforeEach(() => open())

  it('is kept by hour after 3 days and by day after 40, while the stream exists', async () => {
    await advanceTo(test, 90 * MINUTE)
    await append(test, A, 5)
    await upkeep(test)
    await advanceTo(test, 100 * MINUTE)
    await append(test, A, 6)
    await upkeep(test)
    await advanceTo(test, DAY)
    await append(test, A, 7)
    await upkeep(test)

    await advanceTo(test, 10 * DAY)
    await upkeep(test)
    const hours = await ofStream(test, A, [0, 2 * DAY])
    expect(hours).toMatch(/^1h:11 2h:11 (.*) 23h:11 1d:18 25h:18 (.*) 47h:18$/)

    await advanceTo(test, 60 * DAY)
    await upkeep(test)
    expect(await ofStream(test, A, [0, 3 * DAY])).toEqual('0:11 1d:18 2d:18')

    for (const years of [1, 2, 3, 6]) {
      await advanceTo(test, years * 365 * DAY)
      await upkeep(test)
      const minute = years * 365 * DAY - MINUTE
      expect(await ofStream(test, A, [minute, minute])).toMatch(/^\d+m:18$/)
    }
  })

  it('is removed after 3 days if the stream is deleted', async () => {
    await append(test, A, 5)
    await upkeep(test)
    const isOfLog = ({ key }: { key: string }) => key.endsWith('\0a')
    const documents = async () =>
      (await test.session.list('usage', { prefix: '', after: '', limit: 100 })).filter(isOfLog).length
    expect(await documents()).toBe(3)
    await deleteStream(test, A)
    await advanceTo(test, 4 * DAY)
    await upkeep(test)
    expect(await documents()).toBe(0)
  })
})

describe('the storage gauge of a basin', () => {
  beforeEach(() => open())

  it('has a value for each hour, and the current value for the current hour', async () => {
    await append(test, A, 10)
    await append(test, B, 5)
    await beginHour(0)
    await beginHour(2)
    await append(test, A, 100)
    await beginHour(3)
    await beginHour(5)
    await advanceTo(test, 5 * HOUR + 10)
    await store(test, 'b', 1_000)
    expect(await ofBasinOne([0, 6 * HOUR - 3_500])).toEqual('1h:15 2h:115 3h:115 4h:115 5h:1115')
    expect(await ofBasinOne([5 * HOUR + 10, 5 * HOUR + 10])).toEqual('5h:1115')
    expect(await ofBasinOne([4 * HOUR, 5 * HOUR])).toEqual('4h:115')
  })

  it('has the value of the end of an hour, also if it is measured later, and keeps it', async () => {
    await append(test, A, 100)
    await beginHour(1)
    await append(test, A, 11)
    for (const time of [2 * HOUR + 10, 3 * HOUR - 10]) {
      await advanceTo(test, time)
      expect(await ofBasinOne([0, 2 * HOUR])).toEqual('0:100 1h:111')
      await append(test, A, 900)
    }
  })

  it('begins when the basin is created', async () => {
    await advanceTo(test, HOUR + 10)
    await createBasin(test, 'basin-two')
    await upkeep(test)
    await beginHour(2)
    await advanceTo(test, 3 * HOUR)
    expect(await ofBasin(test, 'basin-two', 'storage', [0, 3 * HOUR])).toEqual({
      metered_size: '1h:0 2h:0',
    })
  })

  it('falls when streams are deleted', async () => {
    await append(test, A, 10)
    await append(test, B, 5)
    await beginHour(1)
    await deleteStream(test, A)
    await beginHour(2)
    expect(await ofBasinOne([0, 2 * HOUR])).toEqual('0:15 1h:5')
  })

  it('is kept by day after 40 days', async () => {
    for (let hour = 1; hour <= 50; hour++) {
      await beginHour(hour)
      await store(test, 'a', 1)
    }
    await advanceTo(test, 60 * DAY)
    await upkeep(test)
    expect(await ofBasinOne([0, 3 * DAY])).toEqual('0:23 1d:47 2d:49')
  })
})

describe('the storage gauge of a basin that was deleted in its third hour', () => {
  beforeEach(async () => {
    await open()
    await append(test, A, 100)
    await beginHour(1)
    await beginHour(2)
    await deleteStream(test, A)
    await deleteStream(test, B)
    await deleteBasin(test, 'basin-one')
  })

  it('drops to zero if the deletion was seen', async () => {
    test.usage.basinDeleted('basin-one')
    await advanceTo(test, 6 * HOUR)
    expect(await ofBasinOne([0, 6 * HOUR])).toEqual('0:100 1h:100 2h:0')
  })

  it('ends with its last measurement otherwise', async () => {
    await beginHour(6)
    expect(await ofBasinOne([0, 6 * HOUR])).toEqual('0:100 1h:100')
  })

  it.each(['seen', 'not seen'])(
    'does not continue in the next basin of the name: deletion %s',
    async (how) => {
      if (how === 'seen') test.usage.basinDeleted('basin-one')
      await advanceTo(test, 8 * HOUR + 10)
      await createBasin(test, 'basin-one')
      await createStream(test, A, 'another')
      await beginHour(9)
      await advanceTo(test, 9 * HOUR + 30)
      expect(await ofBasinOne([0, 9 * HOUR + 30])).toEqual('8h:0 9h:0')
    },
  )

  it('does not continue in the days of the next basin either', async () => {
    await advanceTo(test, 50 * HOUR)
    await createBasin(test, 'basin-one')
    await createStream(test, A, 'another')
    await append(test, { ...A, stream: 'another' }, 7)
    await beginHour(51)
    await advanceTo(test, 60 * DAY)
    await upkeep(test)
    expect(await ofBasinOne([0, 4 * DAY])).toEqual('2d:7 3d:7')
  })
})
