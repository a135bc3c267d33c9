import { rm } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { filesystem } from '../../../adapters/storage/filesystem/index.ts'
import { nodeFiles } from '../../../adapters/storage/filesystem/node-files.ts'
import { openFiles } from '../../../adapters/storage/filesystem/open-files.ts'
import { conformanceSuite } from '../../../src/storage/conformance/index.ts'
import type { Storage } from '../../../src/storage/contract.ts'
import { StorageFailure } from '../../../src/storage/errors.ts'
import { temporaryDirectory } from './directories.ts'

describe.each(['sync', 'os'] as const)('filesystem with durability %s', (durability) => {
  conforms((directory) => filesystem(directory, { durability }), durability === 'sync' ? 5 : 2)
})

/** What is rare with real sizes happens all the time when journals are rolled every few blocks. */
describe.each([500, 3000])('filesystem that rolls its journals every %i bytes', (rollBytes) => {
  conforms((directory) => rolling(directory, rollBytes), 15)
})

function conforms(make: (directory: string) => Storage, seeds: number): void {
  const suite = conformanceSuite({
    manifest: make('').manifest,
    make: async () => {
      const directory = await temporaryDirectory()
      return {
        storage: make(directory),
        reopen: async () => make(directory),
        dispose: () => rm(directory, { recursive: true }),
      }
    },
    seeds: Array.from({ length: seeds }, (_, i) => i + 1),
  })
  for (const { title, skip, run } of suite) {
    if (skip !== undefined) test.skip(`${title} (${skip})`)
    else test(title, run)
  }

  test('nothing is skipped but what only shared storages do', () => {
    const reasons = new Set(suite.map(({ skip }) => skip))
    expect(reasons).toEqual(new Set([undefined, 'the storage is not shared']))
  })
}

function rolling(directory: string, rollBytes: number): Storage {
  const { manifest } = filesystem(directory)
  let isOpen = false
  return {
    manifest,
    async open() {
      if (isOpen) throw new StorageFailure('blocked', 'open elsewhere', { nothingWritten: true })
      isOpen = true
      return openFiles(nodeFiles(directory), { durability: 'sync', rollBytes }, async () => {
        isOpen = false
      })
    },
  }
}
