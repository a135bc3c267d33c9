// @module-tag slow

import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { conformanceSuite } from '../../adapters/conformance/index.ts'
import { filesystem } from '../../adapters/storage/filesystem/index.ts'
import { memory } from '../../adapters/storage/memory/index.ts'
import { faultyStorage, virtualClock } from '../../adapters/testing/index.ts'
import type { Clock } from '../../src/runtime/clock.ts'
import type { Storage } from '../../src/storage/contract.ts'
import { temporaryDirectory } from '../storage/filesystem/directories.ts'
import { realistic } from '../storage/wrapped-storage.ts'

const directory = await temporaryDirectory()

/** Each creates an empty storage under a new name. */
const STORAGES: readonly (readonly [title: string, make: (name: string) => Storage])[] = [
  ['memory', () => faultyStorage(memory(), { notifications: 'reliable' })],
  ['a storage with one owner that works later and merges blocks', () => faultyStorage(realistic())],
  [
    'a directory',
    (name) => faultyStorage(filesystem(join(directory, name), { durability: 'process-crash' })),
  ],
]

/** Without faults it keeps the whole contract. */
describe.each(STORAGES)('a faulty storage without faults, around %s', (title, make) => {
  let created = 0
  const suite = conformanceSuite({
    manifest: make('manifest').manifest,
    make: async () => ({ storage: make(`${title}-${created++}`), dispose: async () => {} }),
    keepsDataWhenClosed: true,
    clock: virtualClock(),
    seeds: [1],
    notificationMsMax: 60_000,
    randomOperations: 150,
  })
  for (const { title, skip, run } of suite) {
    if (skip !== undefined) test.skip(`${title} (${skip})`)
    else test(title, run)
  }
})

/** Delays of 0 ms, during which everything else runs. */
const turningClock: Clock = {
  now: () => 0,
  schedule(delayMs, callback) {
    let isCancelled = false
    const waitTurns = (turnsLeft: number): void => {
      if (isCancelled) return
      if (turnsLeft <= 0) callback()
      else setImmediate(waitTurns, turnsLeft - 1)
    }
    waitTurns(delayMs)
    return () => {
      isCancelled = true
    }
  },
}

const CALLS = ['get', 'list', 'commit', 'head', 'append', 'read', 'reclaim', 'measure'] as const

/**
 * Delays break no promise: appends to a log keep their order, closing waits, and resolved writes are stored.
 */
describe('a faulty storage with delays and duplicate notifications only', () => {
  const delay = [0, 3] as const
  const rates = { ...Object.fromEntries(CALLS.map((call) => [call, { delay }])), open: { delay } }
  const make = () => {
    const storage = faultyStorage(memory(), { rates, notifications: 'reliable' })
    storage.duplicateNotifications()
    return storage
  }
  const suite = conformanceSuite({
    manifest: make().manifest,
    make: async () => ({ storage: make(), dispose: async () => {} }),
    keepsDataWhenClosed: true,
    clock: turningClock,
    seeds: [1],
    notificationMsMax: 60_000,
    randomOperations: 150,
  })
  for (const { title, skip, run } of suite) if (skip === undefined) test(title, run)
})

test('the memory storage skips only the cases of other storages', () => {
  const { manifest } = faultyStorage(memory(), { notifications: 'reliable' })
  const make = async () => ({ storage: memory(), dispose: async () => {} })
  const suite = conformanceSuite({ manifest, make, keepsDataWhenClosed: true })
  const reasons = suite.flatMap(({ skip }) => skip ?? [])
  expect(reasons).toEqual(['the storage may return memory that it keeps', 'the storage is shared'])
})
