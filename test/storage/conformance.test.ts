import 'fake-indexeddb/auto'
import type { PGlite } from '@electric-sql/pglite'
import { deleteDB } from 'idb'
import { afterAll, describe, expect, test } from 'vitest'
import { type ConformanceFixture, conformanceSuite } from '../../adapters/conformance/index.ts'
import { filesystem } from '../../adapters/storage/filesystem/index.ts'
import { indexedDb } from '../../adapters/storage/indexeddb/index.ts'
import { LogStorage } from '../../adapters/storage/log/storage.ts'
import { directoryMedium } from '../../adapters/storage/media/directory.ts'
import { nodeFiles } from '../../adapters/storage/media/files.ts'
import { memory } from '../../adapters/storage/memory/index.ts'
import { postgres } from '../../adapters/storage/postgres/index.ts'
import { objectStorage } from '../../adapters/storage/s3/index.ts'
import { durableObject } from '../../adapters/storage/sqlite/durable-object.ts'
import { sqlite } from '../../adapters/storage/sqlite/index.ts'
import { virtualClock } from '../../adapters/testing/index.ts'
import type { Clock } from '../../src/runtime/clock.ts'
import type { Storage } from '../../src/storage/contract.ts'
import { copyOfDirectory, temporaryDirectory } from './filesystem/directories.ts'
import { OrderedMap, orderedMapStorage } from './key-value/ordered-map.ts'
import { newSchema } from './postgres/schemas.ts'
import { FakeS3 } from './s3/fake-s3.ts'
import { DRIVERS } from './sqlite/databases.ts'
import { SqliteObject } from './sqlite/durable-object-storage.ts'

interface Target {
  readonly title: string
  readonly make: () => Promise<ConformanceFixture>
  /** A storage that is not opened. */
  readonly unopened: () => Storage
  /** Why some tests do not apply. */
  readonly skips: readonly string[]
  readonly tags?: ('slow' | 'nightly')[]
  readonly clock?: Clock
}

const SHARED = 'the storage is shared'
const EXCLUSIVE = 'the storage is not shared'
const HINTS = "notifications are 'hint'"
const NO_NOTIFICATIONS = "notifications are 'none'"

let databases = 0

/** Each kind of storage. `test/browser` runs the suite in a browser, and `postgres` runs it on servers. */
const TARGETS: Target[] = [
  {
    title: 'memory',
    unopened: memory,
    make: async () => over(memory()),
    skips: [SHARED],
    clock: virtualClock(),
  },
  {
    title: 'IndexedDB',
    unopened: () => indexedDb(''),
    make: async () => {
      const name = `conformance-${databases++}`
      return { ...reopened(() => indexedDb(name)), dispose: () => deleteDB(name) }
    },
    skips: [SHARED, HINTS],
  },
  { title: 'a directory', unopened: () => filesystem('unopened'), make: directoryFixture, skips: [SHARED] },
  {
    title: 'a directory whose journals are rolled every 3,000 bytes',
    unopened: () => filesystem('unopened'),
    make: rollingFixture,
    skips: [SHARED],
    tags: ['slow'],
  },
  orderedMapTarget('an ordered map that processes share', { shared: true }, [SHARED, NO_NOTIFICATIONS]),
  { ...orderedMapTarget('an ordered map with one writer', {}, [EXCLUSIVE]), tags: ['slow'] },
  {
    title: 'a bucket',
    unopened: () => objectStorage({ bucket: 'unopened' }),
    make: async () => {
      const bucket = new FakeS3()
      const storage = bucket.storage()
      // After a crash, the process before seems to have it open.
      return { storage, reopen: async () => bucket.storage({ takeOver: true }), dispose: async () => {} }
    },
    skips: [EXCLUSIVE],
  },
  {
    title: 'PGlite',
    unopened: () => postgres({ connectionString: 'postgres://localhost' }),
    make: pgliteFixture,
    skips: [SHARED, HINTS],
    // Servers of PostgreSQL run the same suite in `.ci/run`.
    tags: ['nightly'],
  },
]
for (const [driver, Database] of Object.entries(DRIVERS)) {
  TARGETS.push({
    title: `a database of ${driver}`,
    unopened: () => sqlite('unopened'),
    make: async () => {
      // `npm run check:runtimes` has files.
      const database = new Database(':memory:')
      return { ...reopened(() => sqlite(database)), dispose: async () => database.close() }
    },
    skips: [SHARED, NO_NOTIFICATIONS],
    clock: virtualClock(),
  })
}
if (Object.keys(DRIVERS).length > 0) {
  TARGETS.push({
    title: 'the database of a Durable Object',
    unopened: () => durableObject(new SqliteObject()),
    make: async () => {
      const object = new SqliteObject()
      return reopened(() => durableObject(object))
    },
    skips: [EXCLUSIVE],
    clock: virtualClock(),
  })
}

/** Those that take long, because they are about the largest blocks or about many. */
const LARGE =
  /random operations|at most `limit`|any range|encoded size|a large batch|many extended|1,000 producers|several blocks/

describe.each(TARGETS.map((target) => [target.title, target] as const))('%s', (_, target) => {
  const { unopened, make, skips, tags = [], clock } = target
  const suite = conformanceSuite({
    manifest: unopened().manifest,
    make,
    keepsDataWhenClosed: true,
    notificationMsMax: 60_000,
    seeds: [Number(process.env.FAST_CHECK_SEED ?? 1)],
    randomOperations: Number(process.env.FAST_CHECK_RUNS ?? 50),
    clock,
  })
  for (const { title, skip, run } of suite) {
    if (skip === undefined) test(title, { tags: LARGE.test(title) ? ['slow', ...tags] : tags }, run)
  }

  test('leaves out only what does not apply', () => {
    expect(new Set(suite.flatMap(({ skip }) => skip ?? []))).toEqual(new Set(skips))
  })
})

/** The data lives as long as the object. */
function over(storage: Storage): ConformanceFixture {
  return { storage, dispose: async () => {} }
}

/** Another object over the same data for each opening, as in another process. */
function reopened(make: () => Storage): ConformanceFixture {
  return { storage: make(), reopen: async () => make(), dispose: async () => {} }
}

function orderedMapTarget(
  title: string,
  options: Parameters<typeof orderedMapStorage>[1],
  skips: readonly string[],
): Target {
  return {
    title,
    unopened: () => orderedMapStorage(new OrderedMap(), options),
    make: async () => {
      const map = new OrderedMap()
      return reopened(() => orderedMapStorage(map, options))
    },
    skips,
    clock: virtualClock(),
  }
}

async function directoryFixture(): Promise<ConformanceFixture> {
  let directory = await temporaryDirectory()
  return {
    ...reopened(() => filesystem(directory)),
    // What a process has written is there after its end.
    crash: async () => {
      directory = await copyOfDirectory(directory)
      return filesystem(directory)
    },
  }
}

/** Makes states frequent that are rare with real sizes. Files that are being rolled cannot be copied. */
async function rollingFixture(): Promise<ConformanceFixture> {
  const directory = await temporaryDirectory()
  let opened: Promise<LogStorage> | undefined
  const files = nodeFiles(directory)
  const storage: Storage = {
    manifest: filesystem('unopened').manifest,
    async open(context) {
      opened ??= directoryMedium(files).then((medium) =>
        LogStorage.open(medium, { durability: 'power-loss', rollBytes: 3_000 }, async () => {
          opened = undefined
        }),
      )
      return (await opened).join(context)!
    },
  }
  return over(storage)
}

let pglite: Promise<PGlite> | undefined
afterAll(async () => (await pglite)?.close())

async function pgliteFixture(): Promise<ConformanceFixture> {
  pglite ??= import('@electric-sql/pglite').then(({ PGlite }) => PGlite.create())
  const client = await pglite
  const schema = newSchema()
  return {
    ...reopened(() => postgres({ client, schema })),
    dispose: async () => void (await client.exec(`DROP SCHEMA IF EXISTS ${schema} CASCADE`)),
  }
}
