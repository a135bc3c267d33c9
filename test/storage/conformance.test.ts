import { describe, expect, test } from 'vitest'
import { memory } from '../../adapters/storage/memory/index.ts'
import { virtualClock } from '../../adapters/testing/index.ts'
import { conformanceSuite } from '../../src/storage/conformance/index.ts'
import type { Storage } from '../../src/storage/contract.ts'
import { catalogMutations } from './mutations/catalog.ts'
import { lifecycleMutations } from './mutations/lifecycle.ts'
import { logsMutations } from './mutations/logs.ts'
import { readMutations } from './mutations/read.ts'
import { reclaimMutations } from './mutations/reclaim.ts'
import { sharedMutations } from './mutations/shared.ts'
import { takingTurns, turnMutations } from './mutations/turns.ts'
import { realistic, splitting } from './wrapped-storage.ts'

const mutations = [
  ...catalogMutations,
  ...logsMutations,
  ...readMutations,
  ...reclaimMutations,
  ...sharedMutations,
  ...turnMutations,
  ...lifecycleMutations,
]

describe('the conformance suite notices a storage that breaks', () => {
  for (const { breaks, noticedBy, make } of mutations) {
    test(breaks, async () => {
      const suite = suiteFor(make, memory().manifest)
      for (const title of noticedBy) {
        const found = suite.find((one) => one.title === title)
        expect(found, title).toBeDefined()
        await expect(found!.run(), title).rejects.toThrow()
      }
    })
  }

  test('its manifest', async () => {
    const manifest = { ...memory().manifest, name: 'other' }
    const [found] = suiteFor(memory, manifest).filter(({ title }) => title.includes('manifest'))
    await expect(found!.run()).rejects.toThrow('manifest: expected')
  })

  test('its promise to have one owner', async () => {
    const manifest = { ...memory().manifest, shared: false }
    const make = () => ({ ...memory(), manifest })
    const [found] = suiteFor(make, manifest).filter(({ title }) => title.includes('one at a time'))
    await expect(found!.run()).rejects.toThrow('second opening: expected a rejection')
  })
})

describe('the conformance suite accepts a storage that splits blocks', () => {
  for (const { title, skip, run } of suiteFor(splitting, splitting().manifest)) {
    if (skip === undefined && /^(logs|read|reclaim)/.test(title)) test(title, run)
  }
})

describe('the conformance suite accepts a storage that merges blocks, has one owner and works later', () => {
  const suite = suiteFor(realistic, realistic().manifest)

  for (const { title, skip, run } of suite) if (skip === undefined) test(title, run)

  test('what does not apply is skipped with a reason', () => {
    const reasons = new Set(suite.map(({ skip }) => skip))
    expect(reasons).toEqual(new Set([undefined, 'the storage is not shared']))
  })
})

describe('the conformance suite accepts a storage that gives turns', () => {
  const suite = suiteFor(takingTurns, memory().manifest).filter(({ title }) => title.startsWith('turns: '))

  for (const { title, run } of suite) test(title, run)
})

test('what closing forgets is not asked for, unless it is promised', () => {
  const make = async () => ({ storage: memory(), dispose: async () => {} })
  const { manifest } = memory()
  const skipped = conformanceSuite({ manifest, make }).filter(({ skip }) => skip?.includes('forgets'))
  expect(skipped.length).toBe(3)
  const durable = { ...manifest, durability: 'power-loss', notifications: 'hint' } as const
  const reasons = new Set(conformanceSuite({ manifest: durable, make }).map(({ skip }) => skip))
  expect(reasons).toEqual(new Set([undefined, "notifications are 'hint'", 'the storage is shared']))
})

function suiteFor(make: () => Storage, manifest: Storage['manifest']) {
  return conformanceSuite({
    manifest,
    make: async () => ({ storage: make(), dispose: async () => {} }),
    clock: virtualClock(),
    keepsDataWhenClosed: true,
    notificationMsMax: 100,
    seeds: [1],
    randomOperations: 150,
  })
}
