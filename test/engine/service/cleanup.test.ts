import { describe, expect, it } from 'vitest'
import type { Storage, StorageSession } from '../../../src/storage/contract.ts'
import { StorageFailure } from '../../../src/storage/errors.ts'
import {
  bodies,
  onEveryKindOfStorage,
  openEngine,
  outcomeOf,
  readAll,
  testStorage,
  wrapped,
} from '../../support/index.ts'

async function start(options: Parameters<typeof openEngine>[0] = {}) {
  const storage: Storage = testStorage()
  const engine = await openEngine({ storage, ...options })
  const { hw, clock } = engine
  /** The sequence numbers that the storage still holds for the one stream. */
  const stored = async (): Promise<number[]> => {
    const session = await storage.open({ clock, onLogChanged: () => {} })
    const [document] = await session.list('streams', { prefix: '', after: '', limit: 1 })
    const { logId } = document!.value as { logId: string }
    const blocks = await session.read(logId, { from: { seqNum: 0 }, endSeqNum: 1e9, bytesMax: 1e9 })
    await session.close()
    return blocks.flatMap(({ firstSeqNum, endSeqNum }) =>
      Array.from({ length: endSeqNum - firstSeqNum }, (_, i) => firstSeqNum + i),
    )
  }
  return { ...engine, basin: hw.basin('basin', { autoCreate: false }), stored }
}

onEveryKindOfStorage(() => {
  describe('trimming', () => {
    it('applies to new reads at once, and to open sessions after the grace', async () => {
      const { stream, clock, stored } = await start({ trimGraceMs: 10_000 })
      for (const body of ['a', 'b', 'c']) await stream.append(body)
      const session = stream.read({ seqNum: 0, count: 4 }).batches()
      const first = session.next()
      await clock.settle()
      expect(bodies((await first).value!)).toEqual(['a', 'b', 'c'])
      const slow = await stream.openCursor({ seqNum: 0 }, {})
      await stream.trim(2)
      expect(bodies(await stream.readBatch({ seqNum: 0 }))[0]).toBe('c')
      expect(bodies(await stream.readBatch({ timestamp: 0 }))[0]).toBe('c')
      const event = await slow!.next()
      expect(event?.kind === 'batch' && bodies(event.batch)).toEqual(['a', 'b', 'c'])
      await stream.openCursor({ seqNum: 2 }, {})
      await clock.advance('9s')
      expect(await stored()).toEqual([0, 1, 2, 3])
      await clock.advance('1s')
      expect(await stored()).toEqual([2, 3])
    })

    it('leaves an empty stream with its tail if it removes everything, and the command', async () => {
      const { stream, clock } = await start()
      await stream.append(['a', 'b'])
      await stream.trim(Number.MAX_SAFE_INTEGER)
      expect((await stream.checkTail()).seqNum).toBe(3)
      for (const query of [{ seqNum: 0 }, { timestamp: 0 }, { tailOffset: 2 }]) {
        const { records, tail } = await stream.readBatch(query)
        expect([records, tail?.seqNum]).toEqual([[], 3])
      }
      const waiting = stream.readBatch({ seqNum: 0, waitMs: 60_000 })
      await clock.settle()
      await stream.append('c')
      expect(bodies(await waiting)).toEqual(['c'])
    })

    it('frees a stream that is trimmed continuously', async () => {
      const { stream, clock, stored } = await start({ trimGraceMs: 10_000 })
      for (let i = 0; i < 60; i++) {
        const { end } = await stream.append(`${i}`)
        await stream.trim(end.seqNum - 1)
        await clock.advance('1s')
      }
      expect((await stored()).length).toBeLessThan(50)
      await clock.advance('10s')
      expect(await stored()).toEqual([118, 119])
    })
  })

  describe('retention', () => {
    it('hides expired records from new reads at once, frees them later and keeps the tail', async () => {
      const { stream, clock, stored } = await start()
      await stream.reconfigure({ retentionPolicy: { ageSeconds: 100 } })
      await stream.append({ body: 'a', timestamp: 1 })
      await clock.advance('50s')
      await stream.append('b')
      await clock.advance('50s')
      await stream.append('c')
      expect(bodies(await stream.readBatch())).toEqual(['b', 'c'])
      await clock.advance('50s')
      expect(bodies(await stream.readBatch())).toEqual(['c'])
      await clock.advance('49s')
      expect(await stored()).toEqual([2])
      expect((await stream.checkTail()).seqNum).toBe(3)
    })
  })

  describe('delete-on-empty', () => {
    const config = { deleteOnEmpty: { minAgeSeconds: 600 }, retentionPolicy: 'infinite' } as const

    it('deletes a stream without records when it is old enough', async () => {
      const { basin, clock } = await start()
      await basin.createStream('unused', config)
      await clock.advance('9m')
      expect(await basin.stream('unused').exists()).toBe(true)
      await clock.advance('3m')
      expect(await basin.stream('unused').exists()).toBe(false)
    })

    it('keeps a stream with records or recent appends, and deletes it once it is empty', async () => {
      const { basin, clock } = await start()
      const stream = basin.stream('used')
      await basin.createStream('used', config)
      await stream.append('a')
      await clock.advance('1h')
      expect(await readAll(stream)).toEqual(['a'])
      await stream.trim(Number.MAX_SAFE_INTEGER)
      await clock.advance('9m')
      expect((await stream.checkTail()).seqNum).toBe(2)
      await clock.advance('13m')
      expect(await outcomeOf(stream.checkTail())).toBe('stream_not_found')
    })
  })
})

it('the deadlines of deleted streams are removed within about an hour', async () => {
  let inner: StorageSession | undefined
  const storage = wrapped(testStorage(), {}, (session) => {
    inner = session
    return {}
  })
  const { basin, clock } = await start({ storage })
  for (let i = 0; i < 10; i++) {
    await basin.ensureStream('s', { deleteOnEmpty: { minAgeSeconds: 2 ** 40 } })
    await basin.stream('s').delete()
  }
  await clock.advance('62m')
  expect(await inner!.list('deadlines', { prefix: '', after: '', limit: 100 })).toHaveLength(0)
})

it('followers end when the commit of delete-on-empty has an unknown outcome', async () => {
  let failing = false
  const storage = wrapped(testStorage(), { shared: false }, (session) => ({
    async commit(changes) {
      await session.commit(changes)
      if (failing && changes.some(({ kind }) => kind === 'delete-log')) {
        failing = false
        throw new StorageFailure('io', 'the answer got lost', { nothingWritten: false })
      }
    },
  }))
  const { basin, clock } = await start({ storage })
  await basin.ensureStream('s', { deleteOnEmpty: { minAgeSeconds: 60 } })
  const ended = outcomeOf(basin.stream('s').follow().toArray())
  await clock.settle()
  failing = true
  await clock.advance('10m')
  expect(await ended).toBe('stream_deleted')
})
