import { mkdtempSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runConformanceTests } from '@durable-streams/server-conformance-tests'
import { afterAll, beforeAll, describe } from 'vitest'
import { type NodeServer, serve } from '../../adapters/node/index.ts'
import { filesystem } from '../../adapters/storage/filesystem/index.ts'
import { memory } from '../../adapters/storage/memory/index.ts'
import { postgres } from '../../adapters/storage/postgres/index.ts'
import { type Engine, open, type Storage } from '../../src/index.ts'
import { Cluster, HAS_POSTGRES, withoutPostgres } from '../storage/postgres/cluster.ts'
import { byRun } from '../support/run-size.ts'

const LONG_POLL_MS = 500

/** Much of the suite waits in real time. */
const ON_A_DIRECTORY = byRun({ quick: [], full: ['on a directory'] })

/**
 * Some tests of the suite fail if a response takes half a second, since streams that live for two seconds are
 * used every one and a half. Only those that then miss a stream are repeated, and no other test of headwater.
 */
const PUBLISHED = { retry: { count: 2, condition: /^expected 404 to be 200/ } }

describe.skipIf(HAS_POSTGRES /* `npm run test:postgres` runs it on PostgreSQL alone */)(
  'the published suite',
  PUBLISHED,
  () => {
    describe('on memory', () => {
      runSuite(async () => memory())
    })

    describe.each(ON_A_DIRECTORY)('%s', () => {
      const directory = mkdtempSync(join(tmpdir(), 'headwater-durable-streams-'))
      afterAll(() => rm(directory, { recursive: true, force: true }))
      // The disk of a busy machine makes a sync wait for more than that half second.
      runSuite(async () => filesystem(directory, { durability: 'process-crash' }))
    })
  },
)

describe.runIf(HAS_POSTGRES)(`the published suite on PostgreSQL${withoutPostgres}`, PUBLISHED, () => {
  let cluster: Cluster
  afterAll(() => cluster.dispose())
  runSuite(async () => {
    cluster = await Cluster.start()
    return postgres({ connectionString: cluster.connectionString })
  })
})

function runSuite(newStorage: () => Promise<Storage>): void {
  const options = { baseUrl: '', longPollTimeoutMs: LONG_POLL_MS }
  let hw: Engine
  let server: NodeServer

  beforeAll(async () => {
    hw = await open({ storage: await newStorage() })
    const durableStreams = { basin: 'durable', longPollMs: LONG_POLL_MS }
    server = await serve(hw, { auth: 'none', cors: true, durableStreams })
    options.baseUrl = server.url
  })
  afterAll(async () => {
    await Promise.all([server.close(), hw.close()])
  })

  runConformanceTests(options)
}
