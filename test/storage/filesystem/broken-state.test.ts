import { expect, test } from 'vitest'
import { Committer } from '../../../adapters/storage/filesystem/committer.ts'
import { Journals } from '../../../adapters/storage/filesystem/journals.ts'
import { Maintenance, type MaintenanceParts } from '../../../adapters/storage/filesystem/maintenance.ts'
import { State } from '../../../adapters/storage/filesystem/state.ts'
import { Prng } from '../../../src/storage/conformance/prng.ts'
import { SimulatedDisk } from './simulated-disk.ts'

test('when a change that is in the journal cannot be applied, all calls are told, and nothing is written any more', async () => {
  const { disk, state, committer } = started()
  const apply = state.apply.bind(state)
  state.apply = (change, place) => {
    if (change.kind === 'put' && change.key === 'bad') throw new RangeError('injected')
    apply(change, place)
  }
  const behind: Promise<unknown>[] = []
  const results = await Promise.allSettled([
    put(committer, 'first'),
    put(committer, 'bad'),
    put(committer, 'last').catch((error) => {
      behind.push(
        put(committer, 'behind'),
        committer.exclusively(() => {}),
      )
      throw error
    }),
  ])
  const broken = { kind: 'io', message: expect.stringContaining('injected') }
  expect(results).toMatchObject([
    { status: 'fulfilled' },
    { status: 'rejected', reason: { ...broken, nothingWritten: false } },
    { status: 'rejected', reason: { ...broken, nothingWritten: false } },
  ])
  const { length } = disk
  behind.push(put(committer, 'later'))
  expect(await Promise.allSettled(behind)).toMatchObject(
    Array(3).fill({ status: 'rejected', reason: { ...broken, nothingWritten: true } }),
  )
  await committer.idle()
  expect(disk.length).toBe(length)
})

test('what cannot be begun beside the calls is told by the next reclaim, and stops no call', () => {
  const journals = new Journals(new SimulatedDisk(new Prng(1)), false, [], 1)
  Object.defineProperty(journals, 'bytes', {
    get() {
      throw new RangeError('injected')
    },
  })
  const maintenance = new Maintenance({ journals } as unknown as MaintenanceParts)
  maintenance.groupWritten()
  expect(maintenance.takeFailure()).toMatchObject({ kind: 'io', message: 'injected', nothingWritten: true })
  expect(maintenance.takeFailure()).toBeUndefined()
})

function started() {
  const disk = new SimulatedDisk(new Prng(1))
  const state = new State()
  const housekeeping = { groupWritten() {}, behind: undefined }
  return { disk, state, committer: new Committer(state, new Journals(disk, false, [], 1), housekeeping) }
}

function put(committer: Committer, key: string): Promise<void> {
  return committer.commit(10, () => [{ kind: 'put', collection: 'settings', key, text: '1', version: 1 }])
}
