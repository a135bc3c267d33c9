import { mkdtempSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll } from 'vitest'
import { filesystem } from '../adapters/storage/filesystem/index.ts'
import { memory } from '../adapters/storage/memory/index.ts'
import type { Storage } from '../src/index.ts'
import { SharedDirectory } from './shared-directory.ts'

/** The vitest project `filesystem` runs what is above the storages once more, on real directories. */
export const STORAGE_KIND: 'memory' | 'filesystem' =
  process.env.TEST_STORAGE === 'filesystem' ? 'filesystem' : 'memory'

const directories = new Map<string, SharedDirectory>()

/** A new storage of the kind that is being tested; several engines may have it open at once, and it keeps what closed engines left. */
export function testStorage(): Storage {
  if (STORAGE_KIND === 'memory') return memory()
  const path = mkdtempSync(join(tmpdir(), 'headwater-engine-'))
  // Nothing loses power here, and a sync costs more than most tests: those of `sync` are in test/storage/filesystem.
  const directory = new SharedDirectory(filesystem(path, { durability: 'os' }))
  directories.set(path, directory)
  return directory
}

/** How many calls of directories are under way: no turn of a virtual clock waits for a disk. */
export function callsUnderWay(): number {
  let calls = 0
  for (const directory of directories.values()) calls += directory.calls
  return calls
}

afterAll(async () => {
  for (const [path, directory] of directories) {
    await directory.close()
    await rm(path, { recursive: true })
  }
  directories.clear()
})
