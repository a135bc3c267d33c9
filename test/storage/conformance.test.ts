// @module-tag slow

import { describe, expect, test } from 'vitest'
import { conformanceSuite } from '../../adapters/conformance/index.ts'
import { memory } from '../../adapters/storage/memory/index.ts'
import { virtualClock } from '../../adapters/testing/index.ts'
import type { Storage } from '../../src/storage/contract.ts'
import { catalogMutations } from './mutations/catalog.ts'
import { electing, electionMutations } from './mutations/elections.ts'
import { extensionMutations } from './mutations/extensions.ts'
import { lifecycleMutations } from './mutations/lifecycle.ts'
import { logsMutations } from './mutations/logs.ts'
import { readMutations } from './mutations/read.ts'
import { reclaimMutations } from './mutations/reclaim.ts'
import { sharedMutations } from './mutations/shared.ts'
import { streamMutations } from './mutations/streams.ts'
import { writeStateMutations } from './mutations/write-state.ts'
import { realistic, splitting } from './wrapped-storage.ts'

const mutations = [
  ...catalogMutations,
  ...logsMutations,
  ...readMutations,
  ...reclaimMutations,
  ...extensionMutations,
  ...writeStateMutations,
  ...streamMutations,
  ...sharedMutations,
  ...electionMutations,
  ...lifecycleMutations,
]

describe('the conformance suite detects a storage that breaks', () => {
  for (const { breaks, noticedBy, make } of mutations) {
    test(breaks, async () => {
      const suite = suiteFor(make, memory().manifest)
      for (const title of noticedBy) {
        const found = suite.find((test) => test.title === title)
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

  test('its claim not to be shared', async () => {
    const manifest = { ...memory().manifest, shared: false }
    const make = () => ({ ...memory(), manifest })
    const [found] = suiteFor(make, manifest).filter(({ title }) => title.includes('once at a time'))
    await expect(found!.run()).rejects.toThrow('second opening: expected a rejection')
  })
})

describe('the conformance suite accepts a storage that splits blocks', () => {
  for (const { title, skip, run } of suiteFor(splitting, splitting().manifest)) {
    if (skip === undefined && /^(logs|read|reclaim)/.test(title)) test(title, run)
  }
})

describe('the conformance suite accepts a storage that merges blocks, is not shared and works asynchronously', () => {
  const suite = suiteFor(realistic, realistic().manifest)

  for (const { title, skip, run } of suite) if (skip === undefined) test(title, run)

  test('skips tests that do not apply, with a reason', () => {
    const reasons = new Set(suite.map(({ skip }) => skip))
    expect(reasons).toEqual(
      new Set([undefined, 'the storage may return memory that it keeps', 'the storage is not shared']),
    )
  })
})

describe('the conformance suite accepts a storage that elects an engine', () => {
  const suite = suiteFor(electing, memory().manifest).filter(({ title }) => title.startsWith('elections: '))

  for (const { title, run } of suite) test(title, run)
})

test('skips tests of reopening unless the storage keeps its data', () => {
  const make = async () => ({ storage: memory(), dispose: async () => {} })
  const { manifest } = memory()
  const skipped = conformanceSuite({ manifest, make }).filter(({ skip }) => skip?.includes('loses'))
  expect(skipped.length).toBe(8)
  const durable = { ...manifest, durability: 'power-loss', notifications: 'hint' } as const
  const reasons = new Set(conformanceSuite({ manifest: durable, make }).map(({ skip }) => skip))
  expect(reasons).toEqual(
    new Set([
      undefined,
      "notifications are 'hint'",
      'the storage may return memory that it keeps',
      'the storage is shared',
    ]),
  )
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
