import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { conformanceSuite } from 'headwater/conformance'
import { describe, test } from 'vitest'
import { level } from './level.ts'

describe('the suite that every storage passes', () => {
  const suite = conformanceSuite({
    seeds: [1],
    randomOperations: 50,
    manifest: level('unused').manifest,
    make: async () => {
      const directory = await mkdtemp(join(tmpdir(), 'level-storage-'))
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
