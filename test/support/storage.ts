import { mkdtempSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, inject } from 'vitest'
import { filesystem } from '../../adapters/storage/filesystem/index.ts'
import { memory } from '../../adapters/storage/memory/index.ts'
import { postgres } from '../../adapters/storage/postgres/index.ts'
import { type Storage, systemClock } from '../../src/index.ts'
import { afterEachFile } from './after-file.ts'
import { SharedDirectory } from './shared-directory.ts'

/** The vitest projects `filesystem` and `postgres` run tests of the engine again. */
export const STORAGE_KIND = (process.env.TEST_STORAGE ?? 'memory') as 'memory' | 'filesystem' | 'postgres'

const KINDS: readonly (readonly [title: string, shared: boolean])[] =
  STORAGE_KIND === 'memory'
    ? [
        ['on a shared storage', true],
        ['on an exclusive storage', false],
      ]
    : [[`on ${STORAGE_KIND}`, STORAGE_KIND === 'postgres']]

let isShared = true

/** Runs the tests on each kind of storage: shared with other engines, and exclusive to one. */
export function onEveryKindOfStorage(define: () => void): void {
  describe.each(KINDS)('%s', (_, shared) => {
    beforeAll(() => {
      isShared = shared
    })
    afterAll(() => {
      isShared = true
    })
    define()
  })
}

const directories = new Map<string, SharedDirectory>()
let schemas = 0

/**
 * A new storage of the kind under test. Several engines may open it, and it keeps what closed engines wrote.
 */
export function testStorage({ shared = isShared }: { readonly shared?: boolean } = {}): Storage {
  const storage = newStorage()
  return { manifest: { ...storage.manifest, shared }, open: (context) => storage.open(context) }
}

function newStorage(): Storage {
  if (STORAGE_KIND === 'memory') return memory()
  if (STORAGE_KIND === 'postgres') return newTables()
  const path = mkdtempSync(join(tmpdir(), 'headwater-engine-'))
  // A sync costs more than most tests; test/storage/filesystem tests what it is for.
  return shared(path, filesystem(path, { durability: 'process-crash' }))
}

/** The storage repeats what fails in real time, which a virtual clock does not show. */
function newTables(): Storage {
  const schema = `engine_${process.pid}_${schemas++}`
  const storage = postgres({ connectionString: inject('postgres'), schema, connectionsMax: 3, listen: false })
  return shared(schema, {
    manifest: storage.manifest,
    // The engine's clock is virtual.
    open: (context) => storage.open({ ...context, clock: { ...systemClock, isVirtual: true } }),
  })
}

function shared(name: string, storage: Storage): Storage {
  const directory = new SharedDirectory(storage)
  directory.onIdle = wakeWaiting
  directories.set(name, directory)
  return directory
}

/** Whether calls of directories are pending: a virtual clock does not wait for a disk. */
export function hasPendingCalls(): boolean {
  for (const directory of directories.values()) if (directory.calls > 0) return true
  return false
}

const waiting = new Set<() => void>()

/** Resolves when the pending calls have ended. The process sleeps meanwhile: a server may need its core. */
export async function callsEnded(): Promise<void> {
  while (hasPendingCalls()) await new Promise<void>((resolve) => waiting.add(resolve))
}

function wakeWaiting(): void {
  for (const wake of waiting) wake()
  waiting.clear()
}

afterEachFile(async () => {
  for (const [path, directory] of directories) {
    await directory.close()
    await rm(path, { recursive: true, force: true })
  }
  directories.clear()
})
