import { afterEach, describe, expect, it } from 'vitest'
import { open } from '../../../src/index.ts'
import {
  onEveryKindOfStorage,
  openEngine,
  outcomeOf,
  type TestEngine,
  testStorage,
} from '../../support/index.ts'

let engine: TestEngine | undefined
afterEach(async () => {
  await engine?.hw.close()
  engine = undefined
})

onEveryKindOfStorage(() =>
  describe('basins', () => {
    it('are deleted with their streams, and their names can be used again', async () => {
      engine = await openEngine()
      const { hw, clock } = engine
      const basin = hw.basin('basin', { autoCreate: false })
      for (let i = 0; i < 250; i++) await basin.createStream(`stream-${i}`)
      await engine.stream.append('old')
      await hw.deleteBasin('basin')
      const [info] = (await hw.listBasins()).items
      expect([info?.state, info?.deletedAt]).toEqual(['deleting', new Date(clock.now())])
      await hw.deleteBasin('basin')
      expect(await outcomeOf(basin.createStream('more'))).toBe('basin_deletion_pending')
      expect(await outcomeOf(hw.createBasin('basin'))).toBe('basin_deletion_pending')
      expect(await outcomeOf(hw.reconfigureBasin('basin', {}))).toBe('basin_deletion_pending')
      while ((await hw.listBasins()).items.length > 0) await clock.settle()
      expect(await outcomeOf(basin.stream('stream').checkTail())).toBe('basin_not_found')
      expect(await outcomeOf(hw.deleteBasin('basin'))).toBe('basin_not_found')
      await hw.createBasin('basin')
      expect((await basin.listStreams()).items).toEqual([])
    })

    it('finish a deletion after a restart', async () => {
      const storage = testStorage()
      engine = await openEngine({ storage })
      await engine.hw.deleteBasin('basin')
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
      expect(await outcomeOf(hw.basinConfig('missing'))).toBe('basin_not_found')
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
