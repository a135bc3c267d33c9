import { afterEach, describe, expect, it } from 'vitest'
import { open } from '../../../src/index.ts'
import { StorageFailure } from '../../../src/storage/errors.ts'
import {
  onEveryKindOfStorage,
  openEngine,
  outcomeOf,
  silent,
  type TestEngine,
  testStorage,
  wrapped,
} from '../../support/index.ts'

let engine: TestEngine | undefined
afterEach(async () => {
  await engine?.hw.close()
  engine = undefined
})

onEveryKindOfStorage(() =>
  describe('basins', () => {
    it('are deleted with their streams, and their names can be used again', async () => {
      let removed = () => {}
      const isRemovable = new Promise<void>((resolve) => {
        removed = resolve
      })
      const storage = wrapped(testStorage(), {}, (session) => ({
        async commit(changes) {
          if (changes.some(({ kind }) => kind === 'delete')) await isRemovable
          return session.commit(changes)
        },
      }))
      engine = await openEngine({ storage })
      const { hw, clock } = engine
      const basin = hw.basin('basin', { autoCreate: false })
      for (let i = 0; i < 120; i++) await basin.createStream(`stream-${i}`)
      await engine.stream.append('old')
      const deleting = [hw.basin('basin').delete()]
      await clock.settle()
      const [info] = (await hw.listBasins()).items
      expect([info?.state, info?.deletedAt]).toEqual(['deleting', new Date(clock.now())])
      deleting.push(hw.basin('basin').delete())
      expect(await outcomeOf(basin.createStream('more'))).toBe('basin_deletion_pending')
      expect(await outcomeOf(hw.createBasin('basin'))).toBe('basin_deletion_pending')
      expect(await outcomeOf(hw.basin('basin').reconfigure({}))).toBe('basin_deletion_pending')
      removed()
      await Promise.all(deleting)
      while ((await hw.listBasins()).items.length > 0) await clock.settle()
      expect(await outcomeOf(basin.stream('stream').checkTail())).toBe('basin_not_found')
      expect(await outcomeOf(hw.basin('basin').delete())).toBe('basin_not_found')
      await hw.createBasin('basin')
      expect((await basin.listStreams()).items).toEqual([])
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
      engine = await openEngine({ storage })
      const { hw } = engine
      const basin = hw.basin('basin', { autoCreate: false })
      await basin.createStream('stuck')
      expect(await outcomeOf(hw.basin('basin').delete())).toBe('storage')
      expect((await hw.listBasins()).items[0]?.state).toBe('deleting')
      expect((await basin.listStreams()).items.map(({ name }) => name)).toEqual(['stuck'])
      isFailing = false
      // Background work continues the deletion, and may complete it before this call.
      expect(await outcomeOf(hw.basin('basin').delete())).toMatch(/^(ok|basin_not_found)$/)
      expect(await outcomeOf(basin.stream('stuck').append('x'))).toMatch(GONE)
    })

    it('finish a deletion after a restart', async () => {
      const storage = testStorage()
      engine = await openEngine({ storage })
      await engine.hw.basin('basin').delete()
      await engine.hw.close()
      const reopened = await open({ storage, clock: engine.clock })
      while ((await reopened.listBasins()).items.length > 0) await engine.clock.settle()
      await reopened.close()
    })

    it('reject operations on missing and deleting basins', async () => {
      engine = await openEngine()
      const { hw } = engine
      expect(await outcomeOf(hw.createBasin('basin'))).toBe('resource_already_exists')
      expect(await outcomeOf(hw.createBasin('Bad'))).toBe('invalid')
      expect(await outcomeOf(hw.ensureBasin('basin', {}, { scope: 'aws:eu-north-1' }))).toBe('invalid')
      expect(await outcomeOf(hw.ensureBasin('basin', { streamCipher: 'aegis-256' }))).toBe('invalid')
      expect(await outcomeOf(hw.basin('missing').config())).toBe('basin_not_found')
      expect(await outcomeOf(hw.basin('missing').listStreams())).toBe('basin_not_found')
    })

    it('are created idempotently, ensured as given, and reconfigured in three states', async () => {
      engine = await openEngine()
      const { hw } = engine
      const config = {
        createStreamOnAppend: true,
        defaultStreamConfig: { storageClass: 'standard' as const },
      }
      expect((await hw.createBasin('one', config, { requestToken: 't' })).result).toBe('created')
      expect((await hw.createBasin('one', config, { requestToken: 't' })).result).toBe('noop')
      expect(await outcomeOf(hw.createBasin('one', config, { requestToken: 'u' }))).toBe(
        'resource_already_exists',
      )
      expect(await outcomeOf(hw.createBasin('one', {}, { requestToken: 't' }))).toBe(
        'resource_already_exists',
      )
      expect((await hw.ensureBasin('one', config)).result).toBe('noop')
      expect((await hw.ensureBasin('one', {})).result).toBe('updated')
      expect((await hw.basin('one').config()).createStreamOnAppend).toBe(false)
      expect((await hw.createBasin('one', config, { requestToken: 't' })).result).toBe('noop')
      await hw.basin('one').reconfigure({ defaultStreamConfig: { storageClass: 'standard' } })
      await hw.basin('one').reconfigure({ createStreamOnRead: true })
      const { defaultStreamConfig } = await hw.basin('one').storedConfig()
      expect(defaultStreamConfig).toEqual({ storageClass: 'standard', retentionPolicy: 'infinite' })
      const infinite = { retentionPolicy: 'infinite' }
      expect((await hw.basin('one').config()).defaultStreamConfig).toEqual(infinite)
      const cleared = await hw.basin('one').reconfigure({ defaultStreamConfig: null })
      expect(cleared.defaultStreamConfig).toEqual(infinite)
    })
  }),
)

it('no engine acknowledges an append that begins after the deletion of its basin', async () => {
  const storage = testStorage({ shared: true })
  engine = await openEngine({ storage })
  const { hw, clock } = engine
  // No notification reaches it.
  const other = await open({ storage: silent(storage, 'none'), clock, autoCreate: false })
  const names = Array.from({ length: 60 }, (_, i) => `stream-${i}`)
  for (const name of names) await hw.basin('basin').createStream(name)
  const streams = names.map((name) => other.basin('basin').stream(name))
  await Promise.all(streams.map((stream) => stream.append('before')))
  const sessions = await Promise.all(streams.slice(0, 10).map((stream) => stream.appendSession()))
  await hw.basin('basin').delete()
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
