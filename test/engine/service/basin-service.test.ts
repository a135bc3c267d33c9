import { describe, expect, it } from 'vitest'
import { open } from '../../../src/index.ts'
import { StorageFailure } from '../../../src/storage/errors.ts'
import {
  deferred,
  onEveryKindOfStorage,
  openEngine,
  outcomeOf,
  silent,
  testStorage,
  wrapped,
} from '../../support/index.ts'

async function start(storage = testStorage()) {
  const engine = await openEngine({ storage })
  return { ...engine, basin: engine.hw.basin('basin', { autoCreate: false }) }
}

onEveryKindOfStorage(() =>
  describe('basins', () => {
    it('are deleted with their streams, and their names can be used again', async () => {
      const removable = deferred()
      const storage = wrapped(testStorage(), {}, (session) => ({
        async commit(changes) {
          if (changes.some(({ kind }) => kind === 'delete')) await removable.promise
          return session.commit(changes)
        },
      }))
      const { hw, clock, basin, stream } = await start(storage)
      for (let i = 0; i < 120; i++) await basin.createStream(`stream-${i}`)
      await stream.append('old')
      const deleting = [basin.delete()]
      await clock.settle()
      const [info] = (await hw.listBasins()).items
      expect([info?.state, info?.deletedAt]).toEqual(['deleting', new Date(clock.now())])
      deleting.push(basin.delete())
      expect(await outcomeOf(basin.createStream('more'))).toBe('basin_deletion_pending')
      expect(await outcomeOf(hw.createBasin('basin'))).toBe('basin_deletion_pending')
      expect(await outcomeOf(basin.reconfigure({}))).toBe('basin_deletion_pending')
      removable.resolve()
      await Promise.all(deleting)
      while ((await hw.listBasins()).items.length > 0) await clock.settle()
      expect(await outcomeOf(basin.stream('stream').checkTail())).toBe('basin_not_found')
      expect(await outcomeOf(basin.delete())).toBe('basin_not_found')
      await hw.createBasin('basin')
      expect((await basin.listStreams()).items).toEqual([])
    })

    it('delete no stream of a basin with their name that is created meanwhile', async () => {
      const resumed = deferred()
      let isHeld = false
      const storage = wrapped(testStorage(), {}, (session) => ({
        async list(collection, range) {
          if (collection === 'streams' && isHeld) {
            isHeld = false
            await resumed.promise
          }
          return session.list(collection, range)
        },
      }))
      const { hw, clock, basin } = await start(storage)
      isHeld = true
      const slow = basin.delete()
      await clock.settle()
      // Background work may have removed it by now.
      await basin.delete().catch(() => {})
      await hw.createBasin('basin')
      await basin.createStream('new')
      resumed.resolve()
      await slow
      expect((await hw.listBasins()).items).toMatchObject([{ name: 'basin', state: 'active' }])
      expect((await basin.listStreams()).items).toMatchObject([{ name: 'new' }])
    })

    it('reject their deletion while a stream cannot be deleted, and delete the rest', async () => {
      let isFailing = true
      const storage = wrapped(testStorage(), {}, (session) => ({
        async commit(changes) {
          const isHit = changes.some((change) => change.kind === 'delete' && change.key.endsWith('stuck'))
          if (isHit && isFailing) throw new StorageFailure('io', 'stuck', { nothingWritten: true })
          return session.commit(changes)
        },
      }))
      const { hw, basin } = await start(storage)
      await basin.createStream('stuck')
      expect(await outcomeOf(basin.delete())).toBe('storage')
      expect((await hw.listBasins()).items[0]?.state).toBe('deleting')
      expect((await basin.listStreams()).items.map(({ name }) => name)).toEqual(['stuck'])
      isFailing = false
      // Background work continues the deletion, and may complete it before this call.
      expect(await outcomeOf(basin.delete())).toMatch(/^(ok|basin_not_found)$/)
      expect(await outcomeOf(basin.stream('stuck').append('x'))).toMatch(GONE)
    })

    it('finish a deletion after a restart', async () => {
      const storage = testStorage()
      const { hw, clock, basin } = await start(storage)
      await basin.delete()
      await hw.close()
      const reopened = await open({ storage, clock })
      while ((await reopened.listBasins()).items.length > 0) await clock.settle()
      await reopened.close()
    })

    it('reject operations on missing and deleting basins', async () => {
      const { hw } = await start()
      expect(await outcomeOf(hw.createBasin('basin'))).toBe('resource_already_exists')
      expect(await outcomeOf(hw.createBasin('Bad'))).toBe('invalid')
      expect(await outcomeOf(hw.ensureBasin('basin', { streamCipher: 'aegis-256' }))).toBe('invalid')
      expect(await outcomeOf(hw.basin('missing').config())).toBe('basin_not_found')
      expect(await outcomeOf(hw.basin('missing').listStreams())).toBe('basin_not_found')
    })

    it('are created idempotently, ensured as given, and reconfigured in three states', async () => {
      const { hw } = await start()
      const config = {
        createStreamOnAppend: true,
        defaultStreamConfig: { storageClass: 'standard' as const },
      }
      const create = async (requestToken: string, input = config) => {
        const created = hw.createBasin('one', input, { requestToken })
        return created.then(
          ({ result }) => result,
          () => outcomeOf(created),
        )
      }
      const ensure = async (input: object) => (await hw.ensureBasin('one', input)).result
      expect([await create('t'), await create('t')]).toEqual(['created', 'noop'])
      expect(await create('u')).toBe('resource_already_exists')
      expect(await create('t', {} as typeof config)).toBe('resource_already_exists')
      expect([await ensure(config), await ensure({})]).toEqual(['noop', 'updated'])
      expect((await hw.basin('one').config()).createStreamOnAppend).toBe(false)
      expect(await create('t')).toBe('noop')
      await hw.basin('one').reconfigure({ defaultStreamConfig: { storageClass: 'standard' } })
      await hw.basin('one').reconfigure({ createStreamOnRead: true })
      const { defaultStreamConfig } = await hw.basin('one').config()
      expect(defaultStreamConfig).toEqual({ storageClass: 'standard', retentionPolicy: 'infinite' })
      const cleared = await hw.basin('one').reconfigure({ defaultStreamConfig: null })
      expect(cleared.defaultStreamConfig).toEqual({ storageClass: 'express', retentionPolicy: 'infinite' })
    })
  }),
)

it('no engine acknowledges an append that begins after the deletion of its basin', async () => {
  const storage = testStorage({ shared: true })
  const { clock, basin } = await start(storage)
  // No notification reaches it.
  const other = await open({ storage: silent(storage, 'none'), clock, autoCreate: false })
  const names = Array.from({ length: 60 }, (_, i) => `stream-${i}`)
  for (const name of names) await basin.createStream(name)
  const streams = names.map((name) => other.basin('basin').stream(name))
  await Promise.all(streams.map((stream) => stream.append('before')))
  const sessions = await Promise.all(streams.slice(0, 10).map((stream) => stream.appendSession()))
  await basin.delete()
  const appends = [
    ...streams.map((stream) => stream.append('after')),
    ...sessions.map(async (session) => (await session.submit('after')).ack()),
  ]
  const outcomes = new Set(await Promise.all(appends.map(outcomeOf)))
  expect([...outcomes].filter((code) => !GONE.test(code))).toEqual([])
  await other.close()
})

/** The answers for a stream of a basin that is deleted, or was. */
const GONE = /^(basin_deletion_pending|basin_not_found|stream_deletion_pending|stream_not_found)$/
