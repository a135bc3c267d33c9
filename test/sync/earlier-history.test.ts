import { describe, expect, it } from 'vitest'
import { ChainCursor } from '../../adapters/sync/chain-cursor.ts'
import { fetchEarlier } from '../../adapters/sync/earlier-history.ts'
import type { Mirror } from '../../adapters/sync/mirror.ts'
import { HeadwaterError, type ReadQuery, type Stream, trimRecord } from '../../src/index.ts'
import { outcomeOf } from '../support/index.ts'
import { contentOf, openBoth, until } from './mirrored.ts'
import { isRead, watch } from './outboxes.ts'

const RECORDS = Array.from({ length: 40 }, (_, i) => ({
  body: `${i}`.padStart(10),
  timestamp: 1_000 + 10 * i,
}))

/** A mirror of the last of 40 records. */
async function openEnd(tailOffset = 10) {
  const both = await openBoth()
  const { origin, start, clock, local, hw } = both
  await origin.append(RECORDS)
  const copy = start({ from: { tailOffset } })
  await until(copy, 'live', clock)
  const names = async () => {
    const { items } = await both.hw.basin('basin').listStreams({ prefix: '.earlier/' })
    return items.map(({ name }) => name)
  }
  /** Stores records 12 to 16, as a fetch that is interrupted. */
  const interrupt = async (end = 40 - tailOffset, body?: string) => {
    const stream = `.earlier/${await local.identity()}/${end}`
    const config = { timestamping: { mode: 'client-require', uncapped: true } } as const
    await hw.restoreStream({ basin: 'basin', stream }, { config, start: { seqNum: 12, timestamp: 0 } })
    const records = RECORDS.slice(12, 17).map((record) => (body === undefined ? record : { ...record, body }))
    await hw.basin('basin').stream(stream).append(records)
  }
  return { ...both, copy, names, interrupt }
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

  it('are those that the remote stream still has', async () => {
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

  it('of an interrupted fetch are deleted too when they are trimmed or the mirror starts again', async () => {
    const { copy, origin, clock, names, interrupt } = await openEnd()
    await interrupt()
    await copy.restart()
    await until(copy, 'live', clock)
    expect(await names()).toEqual([])
    await copy.fetchEarlier({ count: 5 })
    await interrupt(25)
    await origin.append([{ ...trimRecord(15), timestamp: 5_000 }])
    await clock.settle()
    expect(await names()).toHaveLength(1)
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

  it('are complete after a fetch that was interrupted', async () => {
    const { copy, network, clock, interrupt } = await openEnd()
    await interrupt()
    expect(await numbersOf(copy)).toEqual(range(30, 40))
    network.refuse()
    const failing = expect(copy.fetchEarlier({ count: 5 })).rejects.toMatchObject({ code: 'unavailable' })
    await clock.advance('10m')
    await failing
    network.heal()
    expect(await copy.fetchEarlier({ count: 5 })).toEqual({ count: 18, start: 12 })
    expect(await numbersOf(copy)).toEqual(range(12, 40))
  })

  it('keep their sequence numbers if the remote stream is trimmed after an interruption', async () => {
    const { copy, origin, clock, remote, local, interrupt } = await openEnd()
    await interrupt()
    await copy.close()
    await origin.append([{ ...trimRecord(20), timestamp: 5_000 }])
    await clock.advance('1h')
    const { signal } = new AbortController()
    expect(await fetchEarlier(remote, local, 5, signal)).toEqual({ count: 10, start: 20 })
    const records = await copy.read({ count: 20 }, { as: 'bytes' }).toArray()
    expect(records).toEqual((await contentOf(origin)).records.slice(0, 20))
  })

  it('of an interrupted fetch are deleted if the remote stream no longer has any of them', async () => {
    const { copy, origin, clock, remote, local, names, interrupt } = await openEnd()
    await interrupt()
    await copy.close()
    await origin.append([{ ...trimRecord(35), timestamp: 5_000 }])
    await clock.advance('1h')
    const { signal } = new AbortController()
    const fetching = fetchEarlier(remote, local, 5, signal)
    await expect(fetching).rejects.toMatchObject({ code: 'range_not_satisfiable' })
    expect(await names()).toEqual([])
    expect(await fetchEarlier(remote, local, 5, signal)).toEqual({ count: 0, start: 30 })
  })

  it('of an interrupted fetch are not continued with another stream', async () => {
    const { copy, names, interrupt } = await openEnd(0)
    await interrupt(40, 'other')
    await expect(copy.fetchEarlier({ count: 5 })).rejects.toMatchObject({ code: 'stream_deleted' })
    expect(await names()).toEqual([])
    expect(await copy.fetchEarlier({ count: 5 })).toEqual({ count: 5, start: 35 })
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

  it('precede the new copy if a restart replaces the copy between two batches', async () => {
    const { copy, remote, local, names } = await openEnd()
    let isRestarted = false
    async function* batches(...call: Parameters<Stream['read']>) {
      for await (const { records } of remote.read(...call).batches()) {
        yield { records: records.slice(0, 3) }
        if (!isRestarted) await copy.restart({ from: { tailOffset: 5 } })
        isRestarted = true
        yield { records: records.slice(3) }
      }
    }
    const slow = { read: (...call: Parameters<Stream['read']>) => ({ batches: () => batches(...call) }) }
    const { signal } = new AbortController()
    expect(await fetchEarlier(slow as unknown as Stream, local, 10, signal)).toEqual({ count: 10, start: 25 })
    expect(await names()).toEqual([`.earlier/${await local.identity()}/35`])
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

  it('are none if the server has just trimmed all of them, although it still shows them', async () => {
    const { origin, start, clock, network, hw } = await openBoth()
    await origin.append([...RECORDS, { ...trimRecord(1_000), timestamp: 5_000 }])
    await origin.fence('writer')
    const copy = start({ from: { tailOffset: 1 } })
    await until(copy, 'live', clock)
    const requests = watch(network)
    expect(await outcomeOf(copy.fetchEarlier({ count: 10 }))).toBe('range_not_satisfiable')
    expect(requests).toEqual(['GET'])
    expect((await hw.basin('basin').listStreams({ prefix: '.earlier/' })).items).toEqual([])
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
  ])('%s', async (_, change, outcome) => {
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

  it('fails if the copy is replaced before it is reached', async () => {
    let isCurrent = true
    const opened: string[] = []
    const part = (name: string): Stream =>
      ({
        openCursor: async () => {
          opened.push(name)
          if (name === 'earlier') throw new HeadwaterError('stream_not_found', 'trimmed')
          isCurrent = false
          return { next: async () => undefined, close: () => opened.push('closed') }
        },
      }) as unknown as Stream
    const parts = [
      { stream: part('earlier'), start: 0, end: 10 },
      { stream: part('copy'), start: 10, end: undefined },
    ]
    const options = { heartbeats: false, allowsEmpty: 'always' } as const
    const cursor = new ChainCursor(parts, async () => isCurrent, { seqNum: 0 }, {}, options)
    await expect(cursor.next()).rejects.toMatchObject({ code: 'stream_deleted' })
    expect(opened).toEqual(['earlier', 'copy', 'closed'])
  })
})
