import { describe, expect, it } from 'vitest'
import type { Mirror } from '../../adapters/sync/mirror.ts'
import { type ReadQuery, trimRecord } from '../../src/index.ts'
import { outcomeOf } from '../support/index.ts'
import { contentOf, openBoth, until } from './mirrored.ts'
import { isRead } from './outboxes.ts'

const RECORDS = Array.from({ length: 40 }, (_, i) => ({
  body: `${i}`.padStart(10),
  timestamp: 1_000 + 10 * i,
}))

/** A mirror of the last of 40 records. */
async function openEnd(tailOffset = 10) {
  const both = await openBoth()
  const { origin, start, clock } = both
  await origin.append(RECORDS)
  const copy = start({ from: { tailOffset } })
  await until(copy, 'live', clock)
  const names = async () => {
    const { items } = await both.hw.basin('basin').listStreams({ prefix: '.earlier/' })
    return items.map(({ name }) => name)
  }
  return { ...both, copy, names }
}

async function numbersOf(copy: Mirror, query?: ReadQuery): Promise<number[]> {
  return (await copy.read(query).toArray()).map(({ seqNum }) => seqNum)
}

function range(start: number, end: number): number[] {
  return Array.from({ length: end - start }, (_, i) => start + i)
}

describe('earlier records', () => {
  it('are stored on request, and read without a connection', async () => {
    const { copy, origin, network, local } = await openEnd()
    expect(await numbersOf(copy)).toEqual(range(30, 40))
    expect(await copy.fetchEarlier({ count: 8 })).toEqual({ count: 8, start: 22 })
    expect(await copy.fetchEarlier({ count: 12 })).toEqual({ count: 12, start: 10 })
    network.refuse()
    expect(await copy.read({}, { as: 'bytes' }).toArray()).toEqual(
      (await contentOf(origin)).records.slice(10),
    )
    expect((await contentOf(local)).records).toHaveLength(10)
  })

  it('end with the first record of the remote stream', async () => {
    const { copy, names } = await openEnd()
    expect(await copy.fetchEarlier({ count: 100 })).toEqual({ count: 30, start: 0 })
    expect(await copy.fetchEarlier({ count: 100 })).toEqual({ count: 0, start: 0 })
    expect(await names()).toHaveLength(1)
  })

  it('are those that the remote stream still has', { tags: ['slow'] }, async () => {
    const { copy, origin, clock } = await openEnd()
    await origin.append([{ ...trimRecord(25), timestamp: 5_000 }])
    await clock.advance('1h')
    expect(await copy.fetchEarlier({ count: 10 })).toEqual({ count: 5, start: 25 })
    expect(await copy.fetchEarlier({ count: 10 })).toEqual({ count: 0, start: 25 })
  })

  it('are deleted when the remote stream trims them', async () => {
    const { copy, origin, clock, names } = await openEnd()
    await copy.fetchEarlier({ count: 10 })
    await copy.fetchEarlier({ count: 10 })
    await origin.append([{ ...trimRecord(15), timestamp: 5_000 }])
    await clock.settle()
    expect(await numbersOf(copy)).toEqual(range(20, 41))
    expect(await names()).toHaveLength(1)
    await origin.append([{ ...trimRecord(35), timestamp: 5_000 }])
    await clock.settle()
    expect(await numbersOf(copy)).toEqual(range(35, 42))
    expect(await names()).toEqual([])
  })

  it('are deleted when the mirror starts again', async () => {
    const { copy, clock, names } = await openEnd()
    await copy.fetchEarlier({ count: 10 })
    await copy.restart()
    await until(copy, 'live', clock)
    expect(await numbersOf(copy)).toEqual(range(30, 40))
    expect(await names()).toEqual([])
  })

  it('are not taken from another stream of the same name', async () => {
    const { copy, origin, clock, names } = await openEnd()
    await origin.delete()
    await origin.append(RECORDS.map(({ timestamp }) => ({ body: 'other', timestamp })))
    await until(copy, 'stopped', clock)
    await expect(copy.fetchEarlier({ count: 10 })).rejects.toMatchObject({ code: 'stream_deleted' })
    expect(await names()).toEqual([])
    expect(await numbersOf(copy)).toEqual(range(30, 40))
  })

  it.each([
    ['continue with the records of their stream', '40', range(37, 41)],
    ['are not continued with another stream', 'other', range(37, 40)],
  ])('of a copy without records %s', async (_, body, numbers) => {
    const { copy, origin, network, loseNetwork, clock } = await openEnd(0)
    await copy.fetchEarlier({ count: 3 })
    network.refuse()
    loseNetwork()
    await until(copy, 'offline', clock)
    if (body === 'other') {
      await origin.delete()
      await origin.append(RECORDS.map(({ timestamp }) => ({ body, timestamp })))
    }
    await origin.append([{ body, timestamp: 5_000 }])
    network.heal()
    await until(copy, body === 'other' ? 'stopped' : 'live', clock)
    expect(await numbersOf(copy)).toEqual(numbers)
  })

  it('are stored once by two tabs at the same time', async () => {
    const { copy, start, names } = await openEnd()
    const other = start()
    await Promise.all([copy, other].map((one) => one.fetchEarlier({ count: 5 })))
    const numbers = await numbersOf(copy)
    expect(numbers).toEqual(range(numbers[0]!, 40))
    expect(await numbersOf(other)).toEqual(numbers)
    expect((await names()).length).toBe((30 - numbers[0]!) / 5)
  })

  it('precede the new copy if a restart replaces the copy during the fetch', async () => {
    const { copy, origin, network, clock, names, local } = await openEnd()
    network.delay('300ms', { when: isRead, nth: 1 })
    const fetching = copy.fetchEarlier({ count: 10 })
    await clock.settle()
    await copy.restart({ from: { tailOffset: 5 } })
    await clock.advance('1s')
    expect(await fetching).toEqual({ count: 10, start: 25 })
    expect(await names()).toEqual([`.earlier/${await local.identity()}/35`])
    expect(await copy.read({}, { as: 'bytes' }).toArray()).toEqual(
      (await contentOf(origin)).records.slice(25),
    )
  })

  it('are not kept if the copy was trimmed beyond them during the fetch', async () => {
    const { copy, origin, network, clock, names } = await openEnd()
    network.delay('300ms', { after: true, when: isRead, nth: 1 })
    const outcome = outcomeOf(copy.fetchEarlier({ count: 10 }))
    await clock.settle()
    await origin.append([{ ...trimRecord(35), timestamp: 5_000 }])
    await clock.settle()
    await clock.advance('1s')
    expect(await outcome).toBe('range_not_satisfiable')
    expect(await names()).toEqual([])
    expect(await numbersOf(copy)).toEqual(range(35, 41))
  })

  it('need a count', async () => {
    const { copy } = await openEnd()
    await expect(copy.fetchEarlier({ count: 0 })).rejects.toMatchObject({ code: 'invalid', field: 'count' })
  })
})

describe('a read across earlier records and the copy', () => {
  it.each<[ReadQuery, number[]]>([
    [{}, range(10, 40)],
    [{ seqNum: 0 }, range(10, 40)],
    [{ seqNum: 15 }, range(15, 40)],
    [{ seqNum: 25, count: 10 }, range(25, 35)],
    [{ seqNum: 20, count: 10 }, range(20, 30)],
    [{ seqNum: 12, count: 3 }, range(12, 15)],
    [{ seqNum: 33 }, range(33, 40)],
    [{ tailOffset: 15 }, range(25, 40)],
    [{ tailOffset: 100 }, range(10, 40)],
    [{ tailOffset: 3 }, range(37, 40)],
    [{ timestamp: 1_195 }, range(20, 40)],
    [{ timestamp: 1_200 }, range(20, 40)],
    [{ timestamp: 1_205, until: 1_310 }, range(21, 31)],
    [{ timestamp: 1_390 }, [39]],
    [{ until: 1_150 }, range(10, 15)],
    [{ seqNum: 18, bytes: 18 * 5 }, range(18, 23)],
    [{ seqNum: 18, bytes: 18 * 2 }, range(18, 20)],
    [{ seqNum: 50, clamp: true }, []],
  ])('%j yields the same as a read of a whole stream', async (query, expected) => {
    const { copy } = await openEnd()
    await copy.fetchEarlier({ count: 10 })
    await copy.fetchEarlier({ count: 10 })
    expect(await numbersOf(copy, query)).toEqual(expected)
  })

  it('continues as records arrive', async () => {
    const { copy, origin, clock } = await openEnd()
    await copy.fetchEarlier({ count: 10 })
    const seen: number[] = []
    const subscription = copy
      .read({ seqNum: 25, waitMs: Number.POSITIVE_INFINITY })
      .records$.subscribe(({ seqNum }) => seen.push(seqNum))
    await clock.settle()
    await origin.append({ body: 'live', timestamp: 9_000 })
    await clock.settle()
    expect(seen).toEqual(range(25, 41))
    subscription.unsubscribe()
  })

  it.each([
    ['continues after records that are trimmed meanwhile', 'trim', [...range(10, 20), ...range(35, 41)]],
    ['fails if the copy is replaced meanwhile', 'restart', { code: 'stream_deleted' }],
  ])('%s', { tags: ['slow'] }, async (_, change, outcome) => {
    const { copy, origin, clock } = await openEnd()
    await copy.fetchEarlier({ count: 10 })
    await copy.fetchEarlier({ count: 10 })
    const seen: number[] = []
    const read = async () => {
      for await (const { seqNum } of copy.read()) {
        if (seen.push(seqNum) > 1) continue
        if (change === 'restart') await copy.restart()
        else await origin.append([{ ...trimRecord(35), timestamp: 5_000 }])
        await clock.settle()
      }
      return seen
    }
    expect(await read().catch((error: unknown) => error)).toMatchObject(outcome)
  })
})
