import { afterEach, describe, expect, it } from 'vitest'
import type { memory } from '../../../adapters/storage/memory/index.ts'
import type { StorageSession } from '../../../src/storage/contract.ts'
import { StorageFailure } from '../../../src/storage/errors.ts'
import {
  bodies,
  codeOf,
  onEveryKindOfStorage,
  openEngine,
  outcomeOf,
  readAll,
  type TestEngine,
  testStorage,
  wrapped,
} from '../../support/index.ts'

let engine: TestEngine
afterEach(() => engine.hw.close())

onEveryKindOfStorage(() =>
  describe('trimming', () => {
    it('applies to new reads at once, and to open sessions after the grace', async () => {
      const storage = testStorage()
      engine = await openEngine({ storage, trimGraceMs: 10_000 })
      const { stream, clock } = engine
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
      slow!.close()
      const tooSlow = await stream.openCursor({ seqNum: 2 }, {})
      await clock.advance('9s')
      expect(await storedRecords(storage)).toEqual([0, 1, 2, 3])
      await clock.advance('1s')
      expect(await storedRecords(storage)).toEqual([2, 3])
      tooSlow!.close()
      await session.return(undefined)
    })

    it('leaves an empty stream with its tail if it removes everything, and the command', async () => {
      engine = await openEngine()
      const { stream, clock } = engine
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
      const storage = testStorage()
      engine = await openEngine({ storage, trimGraceMs: 10_000 })
      for (let i = 0; i < 60; i++) {
        const { end } = await engine.stream.append(`${i}`)
        await engine.stream.trim(end.seqNum - 1)
        await engine.clock.advance('1s')
      }
      expect((await storedRecords(storage)).length).toBeLessThan(50)
      await engine.clock.advance('10s')
      expect(await storedRecords(storage)).toEqual([118, 119])
    })
  }),
)

/** The sequence numbers that the storage still holds for the one stream. */
async function storedRecords(storage: ReturnType<typeof memory>): Promise<number[]> {
  const session = await storage.open({ clock: engine.clock, onLogChanged: () => {} })
  const [document] = await session.list('streams', { prefix: '', after: '', limit: 1 })
  const { logId } = document!.value as { logId: string }
  const blocks = await session.read(logId, { from: { seqNum: 0 }, endSeqNum: 1e9, bytesMax: 1e9 })
  await session.close()
  return blocks.flatMap(({ firstSeqNum, endSeqNum }) =>
    Array.from({ length: endSeqNum - firstSeqNum }, (_, i) => firstSeqNum + i),
  )
}

onEveryKindOfStorage(() =>
  describe('retention', () => {
    it('hides expired records from new reads at once, frees them later and keeps the tail', async () => {
      const storage = testStorage()
      engine = await openEngine({ storage })
      const { stream, hw, clock } = engine
      await hw
        .basin('basin')
        .stream('stream')
        .reconfigure({ retentionPolicy: { ageSeconds: 100 } })
      await stream.append({ body: 'a', timestamp: 1 })
      await clock.advance('50s')
      await stream.append('b')
      await clock.advance('50s')
      await stream.append('c')
      expect(bodies(await stream.readBatch())).toEqual(['b', 'c'])
      await clock.advance('50s')
      expect(bodies(await stream.readBatch())).toEqual(['c'])
      await clock.advance('49s')
      expect(await storedRecords(storage)).toEqual([2])
      expect((await stream.checkTail()).seqNum).toBe(3)
    })
  }),
)

onEveryKindOfStorage(() =>
  describe('delete-on-empty', () => {
    const config = { deleteOnEmpty: { minAgeSeconds: 600 } }

    it('deletes a stream without records when it is old enough', async () => {
      engine = await openEngine()
      const basin = engine.hw.basin('basin')
      await basin.createStream('unused', config)
      await engine.clock.advance('9m')
      expect((await basin.listStreams({ prefix: 'unused' })).items).toHaveLength(1)
      await engine.clock.advance('3m')
      expect((await basin.listStreams({ prefix: 'unused' })).items).toHaveLength(0)
    })

    it('keeps a stream with records or recent appends, and deletes it once it is empty', async () => {
      engine = await openEngine()
      const basin = engine.hw.basin('basin', { autoCreate: false })
      const stream = basin.stream('used')
      await basin.createStream('used', { ...config, retentionPolicy: 'infinite' })
      await stream.append('a')
      await engine.clock.advance('1h')
      expect(await readAll(stream)).toEqual(['a'])
      await stream.trim(Number.MAX_SAFE_INTEGER)
      await engine.clock.advance('9m')
      expect((await stream.checkTail()).seqNum).toBe(2)
      await engine.clock.advance('13m')
      expect(await outcomeOf(stream.checkTail())).toBe('stream_not_found')
    })
  }),
)
describe('delete-on-empty', () => {
  it('removes the deadlines of deleted streams within about an hour', async () => {
    let inner: StorageSession | undefined
    const storage = wrapped(testStorage(), {}, (session) => {
      inner = session
      return {}
    })
    const { hw, clock } = await openEngine({ storage })
    const basin = hw.basin('basin')
    for (let i = 0; i < 10; i++) {
      await basin.ensureStream('s', { deleteOnEmpty: { minAgeSeconds: 2 ** 40 } })
      await basin.stream('s').delete()
    }
    await clock.advance('62m')
    expect(await inner!.list('deadlines', { prefix: '', after: '', limit: 100 })).toHaveLength(0)
    await hw.close()
  })
})

describe('background', () => {
  it('ends followers when the commit of delete-on-empty has an unknown outcome', async () => {
    let failing = false
    const storage = wrapped(testStorage(), { shared: false }, (session: StorageSession) => ({
      async commit(changes) {
        await session.commit(changes)
        if (failing && changes.some(({ kind }) => kind === 'delete-log')) {
          failing = false
          throw new StorageFailure('io', 'the answer got lost', { nothingWritten: false })
        }
      },
    }))
    const { hw, clock } = await openEngine({ storage })
    await hw.basin('basin').ensureStream('s', { deleteOnEmpty: { minAgeSeconds: 60 } })
    let ended: string | undefined
    hw.basin('basin', { autoCreate: false })
      .stream('s')
      .follow({})
      .records$.subscribe({
        error: (e) => {
          ended = codeOf(e)
        },
      })
    await clock.settle()
    failing = true
    await clock.advance('10m')
    expect(ended).toBe('stream_deleted')
    await hw.close()
  })
})
