import { rm } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { conformanceSuite } from '../../../adapters/conformance/index.ts'
import { nodeFiles } from '../../../adapters/storage/filesystem/files/node-files.ts'
import { filesystem } from '../../../adapters/storage/filesystem/index.ts'
import { openStorage, type SharedStorage } from '../../../adapters/storage/filesystem/shared-storage.ts'
import type { Durability, Storage } from '../../../src/storage/contract.ts'
import { byRun } from '../../support/run-size.ts'
import { copyOfDirectory, temporaryDirectory } from './directories.ts'

const SEEDS = byRun({ quick: [1], full: [1, 2] })
const DURABILITIES = byRun<Durability[]>({ quick: ['power-loss'], full: ['power-loss', 'process-crash'] })

describe.each(DURABILITIES)('filesystem with durability %s', (durability) => {
  conforms((directory) => filesystem(directory, { durability }), durability === 'power-loss' ? SEEDS : [3])
})

/** Journals that are rolled every few blocks make states frequent that are rare with real sizes. */
describe.each(byRun({ quick: [], full: [500, 3000] }))(
  'filesystem that rolls its journals every %i bytes',
  (rollBytes) => {
    const seeds = [rollBytes, rollBytes + 1, rollBytes + 2]
    conforms((directory) => rolling(directory, rollBytes), seeds, true)
  },
)

function conforms(make: (directory: string) => Storage, seeds: readonly number[], rolls = false): void {
  const suite = conformanceSuite({
    manifest: make('unopened').manifest,
    make: async () => {
      let directory = await temporaryDirectory()
      const directories = [directory]
      return {
        storage: make(directory),
        reopen: async () => make(directory),
        // What a process has written is there after its end. Files that are being rolled cannot be copied.
        ...(!rolls && {
          crash: async () => {
            directory = await copyOfDirectory(directory)
            directories.push(directory)
            return make(directory)
          },
        }),
        dispose: async () => {
          for (const path of directories) await rm(path, { recursive: true })
        },
      }
    },
    seeds,
    notificationMsMax: 60_000,
  })
  for (const { title, skip, run } of suite) {
    if (skip !== undefined) test.skip(`${title} (${skip})`)
    else test(title, run)
  }

  test('skips only the test of storages that are not shared', () => {
    const reasons = new Set(suite.map(({ skip }) => skip))
    expect(reasons).toEqual(new Set([undefined, 'the storage is shared']))
  })
}

function rolling(directory: string, rollBytes: number): Storage {
  const { manifest } = filesystem(directory)
  let opened: Promise<SharedStorage> | undefined
  return {
    manifest,
    async open({ onLogChanged }) {
      opened ??= openStorage(nodeFiles(directory), { durability: 'power-loss', rollBytes }, async () => {
        opened = undefined
      })
      return (await opened).open(onLogChanged)!
    },
  }
}
