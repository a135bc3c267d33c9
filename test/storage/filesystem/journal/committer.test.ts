import { expect, test } from 'vitest'
import { Reserve } from '../../../../adapters/storage/filesystem/files/reserve.ts'
import { Committer } from '../../../../adapters/storage/filesystem/journal/committer.ts'
import { Journals } from '../../../../adapters/storage/filesystem/journal/journals.ts'
import {
  Maintenance,
  type MaintenanceParts,
} from '../../../../adapters/storage/filesystem/maintenance/maintenance.ts'
import { State } from '../../../../adapters/storage/filesystem/state/state.ts'
import { Prng } from '../../../../src/runtime/prng.ts'
import { SimulatedDisk } from '../simulated-disk.ts'

test('a change that cannot be applied fails all calls and stops further writes', async () => {
  const { disk, state, committer } = await started()
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
        committer.runExclusively(() => {}),
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

test('maintenance that cannot start is reported by the next reclaim and fails no other call', async () => {
  const { journals, reserve } = await started()
  Object.defineProperty(journals, 'bytes', {
    get() {
      throw new RangeError('injected')
    },
  })
  const maintenance = new Maintenance({ journals, reserve } as unknown as MaintenanceParts)
  maintenance.groupWritten()
  expect(maintenance.takeFailure()).toMatchObject({ kind: 'io', message: 'injected', nothingWritten: true })
  expect(maintenance.takeFailure()).toBeUndefined()
})

test.each([
  { waiting: 4, turns: 0 },
  { waiting: 3, turns: 1 },
  { waiting: 1, turns: 1 },
])('$waiting calls that wait while 6 are written are written $turns turns later', async (of) => {
  const { committer } = await started()
  const later: Promise<void>[] = []
  const change = { kind: 'put', collection: 'settings', key: 'a', text: '1', version: 1 } as const
  const during = () => {
    for (let i = 0; i < of.waiting; i++) later.push(put(committer, `later ${i}`))
    return [change]
  }
  const first = [committer.commit(10, during, false, () => undefined)]
  for (let i = 0; i < 5; i++) first.push(put(committer, `first ${i}`))
  await Promise.all(first)
  let turns = 0
  setImmediate(() => turns++)
  await Promise.all(later)
  expect(turns).toBe(of.turns)
})

async function started() {
  const disk = new SimulatedDisk(new Prng(1))
  const state = new State()
  const reserve = await Reserve.open(disk, false, 4096)
  const journals = new Journals(disk, reserve, false, [], 1)
  const housekeeping = { groupWritten() {}, backpressure: undefined, refusal: () => undefined, isBusy: false }
  return { disk, state, reserve, journals, committer: new Committer(state, journals, reserve, housekeeping) }
}

function put(committer: Committer, key: string): Promise<void> {
  const change = { kind: 'put', collection: 'settings', key, text: '1', version: 1 } as const
  return committer.commit(
    10,
    () => [change],
    false,
    () => undefined,
  )
}
