// @module-tag slow

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'vitest'
import type { Storage } from '../../src/storage/contract.ts'

const EXAMPLE = join(import.meta.dirname, '../../examples/level-storage/level.ts')

/** Imports by a name that the compiler does not resolve, because it would need the built declarations. */
function load<Module>(name: string): Promise<Module> {
  return import(/* @vite-ignore */ name)
}

// By the names of the package: the example and the suite use what others install.
const { conformanceSuite } =
  await load<typeof import('../../adapters/conformance/index.ts')>('headwater/conformance')
const { level } = await load<{ level(directory: string): Storage }>(EXAMPLE)

describe('the storage in LevelDB', () => {
  const suite = conformanceSuite({
    seeds: [1],
    randomOperations: 50,
    manifest: level('unused').manifest,
    make: async () => {
      const directory = await mkdtemp(join(tmpdir(), 'headwater-level-'))
      return {
        storage: level(directory),
        reopen: async () => level(directory),
        dispose: () => rm(directory, { recursive: true }),
      }
    },
  })
  for (const { title, skip, run } of suite) {
    if (skip === undefined) test(title, run)
    else test.skip(`${title} (${skip})`)
  }
})
