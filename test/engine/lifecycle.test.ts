import { afterEach, describe, expect, it } from 'vitest'
import { memory } from '../../adapters/storage/memory/index.ts'
import { open, StorageFailure } from '../../src/index.ts'
import { gated } from './gated-storage.ts'
import { bodies, onEveryKindOfStorage, openEngine, readAll, type TestEngine, testStorage } from './support.ts'

let engine: TestEngine
afterEach(() => engine.hw.close())

const status = (promise: Promise<unknown>) =>
  promise.then(
    () => 'ok',
    (error: { code?: string }) => error.code ?? String(error),
  )

onEveryKindOfStorage(() =>
  describe('trimming', () => {
    it('holds at once for new reads, and spares open sessions for the grace', async () => {
      const storage = testStorage()
      engine = await openEngine({ storage, trimGraceMs: 10_000 })
      const { stream, clock } = engine
      for (const body of ['a', 'b', 'c']) await stream.append(body)
      const late = stream.read({ seqNum: 0, count: 4 })[Symbol.asyncIterator]()
      const first = late.next()
      await clock.settle()
      expect(bodies((await first).value!)).toEqual(['a', 'b', 'c'])
      const slow = await stream.openRead({ seqNum: 0 })
      await stream.trim(2)
      expect(bodies(await stream.readBatch({ seqNum: 0 }))[0]).toBe('c')
      expect(bodies(await stream.readBatch({ timestamp: 0 }))[0]).toBe('c')
      const event = await slow!.next()
      expect(event?.kind === 'batch' && bodies(event.batch)).toEqual(['a', 'b', 'c'])
      slow!.close()
      const tooSlow = await stream.openRead({ seqNum: 2 })
      await clock.advance('9s')
      expect(await storedRecords(storage)).toEqual([0, 1, 2, 3])
      await clock.advance('1s')
      expect(await storedRecords(storage)).toEqual([2, 3])
      tooSlow!.close()
      await late.return(undefined)
    })

    it('up to and including the command leaves an empty stream with its tail: 416, or waiting', async () => {
      engine = await openEngine()
      const { stream, clock } = engine
      await stream.append(['a', 'b'])
      await stream.trim(Number.MAX_SAFE_INTEGER)
      expect((await stream.checkTail()).seqNum).toBe(3)
      for (const query of [{ seqNum: 0 }, { timestamp: 0 }, { tailOffset: 2 }]) {
        expect(await status(stream.readBatch(query))).toBe('range_not_satisfiable')
      }
      const waiting = stream.readBatch({ seqNum: 0, waitSeconds: 60 })
      await clock.settle()
      await stream.append('c')
      expect(bodies(await waiting)).toEqual(['c'])
    })

    it('a stream that is trimmed all the time is freed all the time', async () => {
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
    it('hides an expired record from new reads at once, and frees it later; the tail stays', async () => {
      const storage = testStorage()
      engine = await openEngine({ storage })
      const { stream, hw, clock } = engine
      await hw.basin('basin').reconfigureStream('stream', { retentionPolicy: { ageSeconds: 100 } })
      await stream.append({ body: 'a', timestamp: 1 })
      await clock.advance('50s')
      await stream.append('b')
      await hw.basin('basin').reconfigureStream('stream', { retentionPolicy: 'infinite' })
      await stream.append('c')
      await clock.advance('50s')
      expect(bodies(await stream.readBatch({ seqNum: 0 }))).toEqual(['b', 'c'])
      await clock.advance('50s')
      expect(bodies(await stream.readBatch({ seqNum: 0 }))).toEqual(['c'])
      await clock.advance('70s')
      expect(await storedRecords(storage)).toEqual([2])
      expect((await stream.checkTail()).seqNum).toBe(3)
    })
  }),
)

onEveryKindOfStorage(() =>
  describe('delete-on-empty', () => {
    const config = { deleteOnEmpty: { minAgeSeconds: 600 } }

    it('deletes a stream that was never written once it is old enough', async () => {
      engine = await openEngine()
      const basin = engine.hw.basin('basin')
      await basin.createStream('unused', config)
      await engine.clock.advance('9m')
      expect((await basin.listStreams({ prefix: 'unused' })).items).toHaveLength(1)
      await engine.clock.advance('3m')
      expect((await basin.listStreams({ prefix: 'unused' })).items).toHaveLength(0)
    })

    it('keeps a stream that holds records or was written lately, and deletes it when it was emptied', async () => {
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
      expect(await status(stream.checkTail())).toBe('stream_not_found')
    })

    it('can be switched on and off', async () => {
      engine = await openEngine()
      const basin = engine.hw.basin('basin')
      await basin.reconfigureStream('stream', config)
      await basin.createStream('kept', config)
      await basin.reconfigureStream('kept', { deleteOnEmpty: null })
      await engine.clock.advance('1h')
      expect((await basin.listStreams()).items.map(({ name }) => name)).toEqual(['kept'])
    })
  }),
)

onEveryKindOfStorage(() =>
  describe('basins', () => {
    it('are deleted with their streams; the name can be used again and shows nothing of the old one', async () => {
      engine = await openEngine()
      const { hw, clock } = engine
      const basin = hw.basin('basin', { autoCreate: false })
      for (let i = 0; i < 250; i++) await basin.createStream(`stream-${i}`)
      await engine.stream.append('old')
      await hw.deleteBasin('basin')
      const [info] = (await hw.listBasins()).items
      expect([info?.state, info?.deletedAt]).toEqual(['deleting', new Date(clock.now())])
      await hw.deleteBasin('basin')
      expect(await status(basin.createStream('more'))).toBe('basin_deletion_pending')
      expect(await status(hw.createBasin('basin'))).toBe('basin_deletion_pending')
      expect(await status(hw.reconfigureBasin('basin', {}))).toBe('basin_deletion_pending')
      while ((await hw.listBasins()).items.length > 0) await clock.settle()
      expect(await status(basin.stream('stream').checkTail())).toBe('basin_not_found')
      expect(await status(hw.deleteBasin('basin'))).toBe('basin_not_found')
      await hw.createBasin('basin')
      expect((await basin.listStreams()).items).toEqual([])
    })

    it('finish their deletion after a restart', async () => {
      const storage = testStorage()
      engine = await openEngine({ storage })
      await engine.hw.deleteBasin('basin')
      await engine.hw.close()
      const again = await open({ storage, clock: engine.clock })
      while ((await again.listBasins()).items.length > 0) await engine.clock.settle()
      await again.close()
    })

    it('refuse what they cannot do', async () => {
      engine = await openEngine()
      const { hw } = engine
      expect(await status(hw.createBasin('basin'))).toBe('resource_already_exists')
      expect(await status(hw.createBasin('Bad'))).toBe('invalid')
      expect(await status(hw.ensureBasin('basin', {}, { scope: 'aws:eu-north-1' }))).toBe('invalid')
      expect(await status(hw.ensureBasin('basin', { streamCipher: 'aegis-256' }))).toBe('invalid')
      expect(await status(hw.basinConfig('missing'))).toBe('basin_not_found')
      expect(await status(hw.basin('missing').listStreams())).toBe('basin_not_found')
    })

    it('create idempotently, ensure fully, reconfigure in three states', async () => {
      engine = await openEngine()
      const { hw } = engine
      const config = {
        createStreamOnAppend: true,
        defaultStreamConfig: { storageClass: 'standard' as const },
      }
      expect((await hw.createBasin('one', config, { requestToken: 't' })).result).toBe('created')
      expect((await hw.createBasin('one', config, { requestToken: 't' })).result).toBe('noop')
      expect(await status(hw.createBasin('one', config, { requestToken: 'u' }))).toBe(
        'resource_already_exists',
      )
      expect(await status(hw.createBasin('one', {}, { requestToken: 't' }))).toBe('resource_already_exists')
      expect((await hw.ensureBasin('one', config)).result).toBe('noop')
      expect((await hw.ensureBasin('one', {})).result).toBe('updated')
      expect((await hw.basinConfig('one')).createStreamOnAppend).toBe(false)
      expect((await hw.createBasin('one', config, { requestToken: 't' })).result).toBe('noop')
      await hw.reconfigureBasin('one', { defaultStreamConfig: { storageClass: 'standard' } })
      const { defaultStreamConfig } = await hw.reconfigureBasin('one', { createStreamOnRead: true })
      expect(defaultStreamConfig).toEqual({ storageClass: 'standard' })
      expect((await hw.reconfigureBasin('one', { defaultStreamConfig: null })).defaultStreamConfig).toEqual(
        {},
      )
    })
  }),
)

onEveryKindOfStorage(() =>
  describe('streams', () => {
    it('come into being on first use where the handle or the basin says so', async () => {
      engine = await openEngine()
      const { hw } = engine
      const strict = hw.basin('strict', { autoCreate: false })
      expect(await status(strict.stream('s').append('a'))).toBe('basin_not_found')
      await hw.createBasin('strict')
      expect(await status(strict.stream('s').append('a'))).toBe('stream_not_found')
      expect(await status(strict.stream('s').checkTail())).toBe('stream_not_found')
      await hw.reconfigureBasin('strict', { createStreamOnAppend: true })
      expect(await status(strict.stream('s').readBatch())).toBe('stream_not_found')
      expect(await status(strict.stream('s').append('a'))).toBe('ok')
      await hw.reconfigureBasin('strict', { createStreamOnAppend: false, createStreamOnRead: true })
      expect(await status(strict.stream('t').append('a'))).toBe('stream_not_found')
      expect(await status(strict.stream('t').readBatch())).toBe('range_not_satisfiable')
      expect(await status(strict.stream('t').append('a'))).toBe('ok')
      await hw
        .basin('fresh')
        .stream('f', { config: { retentionPolicy: 'infinite' } })
        .append('x')
      expect((await hw.basin('fresh').streamConfig('f')).retentionPolicy).toBe('infinite')
    })

    it('are listed in the order of UTF-8, page by page', async () => {
      engine = await openEngine()
      const basin = engine.hw.basin('listed')
      await engine.hw.createBasin('listed')
      const names = ['a', 'a/b', 'a/c', 'b', '\uffee', '\u{1f600}']
      for (const name of [...names].reverse()) await basin.createStream(name)
      const all = await basin.listStreams()
      expect([all.items.map(({ name }) => name), all.hasMore]).toEqual([names, false])
      const page = await basin.listStreams({ prefix: 'a', startAfter: 'a', limit: 1 })
      expect([page.items.map(({ name }) => name), page.hasMore]).toEqual([['a/b'], true])
      expect((await basin.listStreams({ prefix: 'a', startAfter: 'b' })).items).toEqual([])
    })

    it('of other basins never show up', async () => {
      engine = await openEngine()
      await engine.hw.basin('basin-2').stream('x').append('a')
      expect((await engine.hw.basin('basin').listStreams()).items.map(({ name }) => name)).toEqual(['stream'])
    })
  }),
)

onEveryKindOfStorage(() =>
  describe('closing', () => {
    it('waits for appends in flight, refuses what comes later, and leaves no timer', async () => {
      const storage = gated(testStorage())
      engine = await openEngine({ storage })
      const { stream, hw, clock } = engine
      storage.holding = true
      const append = status(stream.append('a'))
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
      expect(await status(stream.append('b'))).toBe('unavailable')
      expect(await status(stream.checkTail())).toBe('unavailable')
      expect(clock.pending).toBe(0)
    })

    it('fails clearly when the storage cannot be opened', async () => {
      engine = await openEngine()
      const storage = {
        ...memory(),
        open: () =>
          Promise.reject(new StorageFailure('blocked', 'held by another', { nothingWritten: true })),
      }
      expect(await status(open({ storage }))).toBe('storage')
    })
  }),
)
