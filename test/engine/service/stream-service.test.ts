import { describe, expect, it, onTestFinished } from 'vitest'
import { open } from '../../../src/index.ts'
import type { StorageSession } from '../../../src/storage/contract.ts'
import { StorageFailure } from '../../../src/storage/errors.ts'
import { onEveryKindOfStorage, openEngine, outcomeOf, testStorage, wrapped } from '../../support/index.ts'

async function start(options: Parameters<typeof openEngine>[0] = {}) {
  const engine = await openEngine(options)
  return { ...engine, basin: engine.hw.basin('basin', { autoCreate: false }) }
}

onEveryKindOfStorage(() => {
  it('a deletion with an unknown outcome ends followers and frees the name', async () => {
    let failing = false
    const storage = wrapped(testStorage(), {}, (session) => ({
      async commit(changes) {
        await session.commit(changes)
        if (failing && changes.some(({ kind }) => kind === 'delete-log')) {
          failing = false
          throw new StorageFailure('io', 'the answer got lost', { nothingWritten: false })
        }
      },
    }))
    const { basin, clock } = await start({ storage })
    const stream = basin.stream('stream')
    await stream.append(['old-1', 'old-2'])
    const ended = outcomeOf(stream.follow({ seqNum: 0 }).toArray())
    await clock.settle()
    failing = true
    expect(await outcomeOf(stream.delete())).toBe('storage')
    expect(await outcomeOf(stream.delete())).toBe('stream_not_found')
    expect(await ended).toBe('stream_deleted')
    await basin.ensureStream('stream')
    expect((await stream.checkTail()).seqNum).toBe(0)
    expect((await stream.readBatch({ seqNum: 0, waitMs: 0 })).count).toBe(0)
  })

  it('streams are created on first use if the handle or the basin allows it', async () => {
    const { hw } = await start()
    const strict = hw.basin('strict', { autoCreate: false })
    const append = (name: string) => outcomeOf(strict.stream(name).append('a'))
    const read = (name: string) => outcomeOf(strict.stream(name).readBatch({ tailOffset: 0 }))
    expect(await append('s')).toBe('basin_not_found')
    await hw.createBasin('strict')
    expect(await append('s')).toBe('stream_not_found')
    expect(await outcomeOf(strict.stream('s').checkTail())).toBe('stream_not_found')
    await strict.reconfigure({ createStreamOnAppend: true })
    expect([await read('s'), await append('s')]).toEqual(['stream_not_found', 'ok'])
    await strict.reconfigure({ createStreamOnAppend: false, createStreamOnRead: true })
    expect([await append('t'), await read('t'), await append('t')]).toEqual(['stream_not_found', 'ok', 'ok'])
    const fresh = hw.basin('fresh').stream('f', { config: { retentionPolicy: { ageSeconds: 60 } } })
    await fresh.append('x')
    expect((await fresh.config()).retentionPolicy).toEqual({ ageSeconds: 60 })
  })

  it('streams are listed in UTF-8 order, page by page', async () => {
    const { hw } = await start()
    const basin = hw.basin('listed')
    await hw.createBasin('listed')
    const names = ['a', 'a/b', 'a/c', 'b', '\uffee', '\u{1f600}']
    for (const name of [...names].reverse()) await basin.createStream(name)
    const list = async (query = {}) => {
      const { items, hasMore } = await basin.listStreams(query)
      return [...items.map(({ name }) => name), hasMore]
    }
    expect(await list()).toEqual([...names, false])
    expect(await list({ prefix: 'a', startAfter: 'a', limit: 1 })).toEqual(['a/b', true])
    expect(await list({ prefix: 'a', startAfter: 'b' })).toEqual([false])
  })

  it('concurrent changes of a stream are made in the order of the calls, each once', async () => {
    // Usage and cleanup commit other documents meanwhile.
    let commits = Number.NEGATIVE_INFINITY
    const storage = wrapped(testStorage(), {}, (session: StorageSession) => ({
      async commit(changes) {
        const putsStream = changes.some((change) => change.kind === 'put' && change.collection === 'streams')
        if (putsStream && ++commits === 2)
          throw new StorageFailure('io', 'disk on fire', { nothingWritten: true })
        await session.commit(changes)
      },
    }))
    const { stream } = await start({ storage })
    commits = 0
    const changes = Array.from({ length: 30 }, (_, i) =>
      outcomeOf(stream.reconfigure({ retentionPolicy: { ageSeconds: i + 1 } })),
    )
    // The one that fails does not stop the next.
    expect(await Promise.all(changes)).toEqual(changes.map((_, i) => (i === 1 ? 'storage' : 'ok')))
    expect(commits).toBe(30)
    expect((await stream.config()).retentionPolicy).toEqual({ ageSeconds: 30 })
  })
})

describe('two engines on one storage', () => {
  it('obey what the other has changed in the basin when they create streams on use', async () => {
    const storage = testStorage()
    const { basin, clock } = await start({ storage })
    const other = await open({ storage, clock })
    onTestFinished(() => other.close())
    const append = (name: string) => outcomeOf(basin.stream(name).append('a'))
    await other.basin('basin').reconfigure({ createStreamOnAppend: true })
    expect(await append('a')).toBe('ok')
    await other.basin('basin').reconfigure({ createStreamOnAppend: false })
    expect(await append('b')).toBe('stream_not_found')
    const retentionPolicy = { ageSeconds: 60 }
    const changed = { createStreamOnAppend: true, defaultStreamConfig: { retentionPolicy } }
    await other.basin('basin').reconfigure(changed)
    expect(await append('c')).toBe('ok')
    expect((await basin.stream('c').config()).retentionPolicy).toEqual(retentionPolicy)
    await other.basin('basin').delete()
    expect(await append('d')).toMatch(/^basin_(deletion_pending|not_found)$/)
  })

  it('append to a stream that the other created at the same time', async () => {
    const storage = testStorage()
    const { hw, clock } = await start({ storage })
    const other = await open({ storage, clock })
    onTestFinished(() => other.close())
    const names = Array.from({ length: 20 }, (_, i) => `stream-${i}`)
    const acks = await Promise.all(
      names.flatMap((name) => [hw, other].map((engine) => engine.basin('basin').stream(name).append('a'))),
    )
    expect(acks.map(({ start }) => start.seqNum).filter((seqNum) => seqNum === 1)).toHaveLength(20)
  })
})
