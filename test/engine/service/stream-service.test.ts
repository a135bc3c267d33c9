import { afterEach, describe, expect, it, onTestFinished } from 'vitest'
import { memory } from '../../../adapters/storage/memory/index.ts'
import { open } from '../../../src/index.ts'
import type { CatalogChange, StorageSession } from '../../../src/storage/contract.ts'
import { StorageFailure } from '../../../src/storage/errors.ts'
import {
  codeOf,
  onEveryKindOfStorage,
  openEngine,
  outcomeOf,
  type TestEngine,
  testClock,
  testStorage,
  wrapped,
} from '../../support/index.ts'

let engine: TestEngine | undefined
afterEach(async () => {
  await engine?.hw.close()
  engine = undefined
})

describe('a deletion with an unknown outcome', () => {
  for (const shared of [true, false]) {
    it(`ends followers and frees the name (shared: ${shared})`, async () => {
      let failing = false
      const storage = wrapped(testStorage(), { shared }, (session: StorageSession) => ({
        async commit(changes) {
          await session.commit(changes)
          if (failing && changes.some(({ kind }) => kind === 'delete-log')) {
            failing = false
            throw new StorageFailure('io', 'the answer got lost', { nothingWritten: false })
          }
        },
      }))
      const clock = testClock({ now: 1_000_000 })
      const hw = await open({ storage, clock, autoCreate: false })
      await hw.ensureBasin('basin')
      const basin = hw.basin('basin')
      await basin.ensureStream('s')
      await basin.stream('s').append(['old-1', 'old-2'])
      let ended: string | undefined
      basin
        .stream('s')
        .follow({ seqNum: 0 })
        .records$.subscribe({
          error: (e) => {
            ended = codeOf(e)
          },
        })
      await clock.settle()
      failing = true
      const first = await basin
        .stream('s')
        .delete()
        .then(() => 'ok', codeOf)
      const second = await basin
        .stream('s')
        .delete()
        .then(() => 'ok', codeOf)
      await clock.settle()
      expect([first, second]).toEqual(['storage', 'stream_not_found'])
      await basin.ensureStream('s')
      const tail = await basin.stream('s').checkTail()
      const read = await basin
        .stream('s')
        .readBatch({ seqNum: 0, waitMs: 0 })
        .then((b) => b.count, codeOf)
      expect({ tail: tail.seqNum, read, ended }).toEqual({
        tail: 0,
        read: 0,
        ended: 'stream_deleted',
      })
      await hw.close()
    })
  }
})

describe('the creation of streams on use', () => {
  it('obeys what another engine has changed in the basin', async () => {
    const storage = memory()
    const [first, second] = [await open({ storage, autoCreate: false }), await open({ storage })]
    for (const hw of [first, second]) onTestFinished(() => hw.close())
    await second.createBasin('basin', { createStreamOnAppend: true })
    const append = (name: string) => outcomeOf(first.basin('basin').stream(name).append('a'))
    expect(await append('a')).toBe('ok')
    await second.basin('basin').reconfigure({ createStreamOnAppend: false })
    expect(await append('b')).toBe('stream_not_found')
    const retentionPolicy = { ageSeconds: 60 }
    const changed = { createStreamOnAppend: true, defaultStreamConfig: { retentionPolicy } }
    await second.basin('basin').reconfigure(changed)
    expect(await append('c')).toBe('ok')
    expect((await first.basin('basin').stream('c').config()).retentionPolicy).toEqual(retentionPolicy)
    await second.basin('basin').delete()
    expect(await append('d')).toMatch(/^basin_(deletion_pending|not_found)$/)
  })

  it('appends to a stream that another engine created at the same time', async () => {
    const storage = memory()
    const engines = [await open({ storage }), await open({ storage })]
    for (const hw of engines) onTestFinished(() => hw.close())
    for (const hw of engines) await hw.basin('basin').stream('before').append('a')
    const names = Array.from({ length: 20 }, (_, i) => `stream-${i}`)
    const acks = await Promise.all(
      names.flatMap((name) => engines.map((hw) => hw.basin('basin').stream(name).append('a'))),
    )
    expect(acks.map(({ start }) => start.seqNum).filter((seqNum) => seqNum === 1)).toHaveLength(20)
  })
})

onEveryKindOfStorage(() =>
  describe('streams', () => {
    it('are created on first use if the handle or the basin allows it', async () => {
      engine = await openEngine()
      const { hw } = engine
      const strict = hw.basin('strict', { autoCreate: false })
      expect(await outcomeOf(strict.stream('s').append('a'))).toBe('basin_not_found')
      await hw.createBasin('strict')
      expect(await outcomeOf(strict.stream('s').append('a'))).toBe('stream_not_found')
      expect(await outcomeOf(strict.stream('s').checkTail())).toBe('stream_not_found')
      await hw.basin('strict').reconfigure({ createStreamOnAppend: true })
      expect(await outcomeOf(strict.stream('s').readBatch({ tailOffset: 0 }))).toBe('stream_not_found')
      expect(await outcomeOf(strict.stream('s').append('a'))).toBe('ok')
      await hw.basin('strict').reconfigure({ createStreamOnAppend: false, createStreamOnRead: true })
      expect(await outcomeOf(strict.stream('t').append('a'))).toBe('stream_not_found')
      expect(await outcomeOf(strict.stream('t').readBatch({ tailOffset: 0 }))).toBe('ok')
      expect(await outcomeOf(strict.stream('t').append('a'))).toBe('ok')
      await hw
        .basin('fresh')
        .stream('f', { config: { retentionPolicy: 'infinite' } })
        .append('x')
      expect((await hw.basin('fresh').stream('f').config()).retentionPolicy).toBe('infinite')
    })

    it('are listed in UTF-8 order, page by page', async () => {
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
  }),
)

describe('concurrent changes of one stream', () => {
  const putsStream = (changes: readonly CatalogChange[]) =>
    changes.some((change) => change.kind === 'put' && change.collection === 'streams')

  it('are made in the order of the calls, each once, also after one that fails', async () => {
    // Usage and cleanup commit other documents meanwhile.
    let commits = 0
    let isCounting = false
    const storage = wrapped(testStorage(), {}, (session: StorageSession) => ({
      async commit(changes) {
        if (isCounting && putsStream(changes) && ++commits === 2)
          throw new StorageFailure('io', 'disk on fire', { nothingWritten: true })
        await session.commit(changes)
      },
    }))
    engine = await openEngine({ storage })
    const basin = engine.hw.basin('basin')
    await basin.ensureStream('s')
    isCounting = true
    const changes = Array.from({ length: 30 }, (_, i) =>
      outcomeOf(basin.stream('s').reconfigure({ retentionPolicy: { ageSeconds: i + 1 } })),
    )
    const outcomes = await Promise.all(changes)
    expect(outcomes).toEqual(outcomes.map((_, i) => (i === 1 ? 'storage' : 'ok')))
    expect(commits).toBe(30)
    expect((await basin.stream('s').config()).retentionPolicy).toEqual({ ageSeconds: 30 })
  })
})
