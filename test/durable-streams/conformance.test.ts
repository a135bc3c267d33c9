import { runConformanceTests } from '@durable-streams/server-conformance-tests'
import { afterAll, beforeAll, beforeEach, describe } from 'vitest'
import { type NodeServer, serve } from '../../adapters/node/index.ts'
import { memory } from '../../adapters/storage/memory/index.ts'
import { postgres } from '../../adapters/storage/postgres/index.ts'
import { type Engine, open, type Storage } from '../../src/index.ts'
import { Cluster, HAS_POSTGRES, withoutPostgres } from '../storage/postgres/cluster.ts'
// The suite imports fast-check itself: this sets the seed of its properties.
import '../support/seeded-properties.ts'

const LONG_POLL_MS = 500
const ABORT_MS = 60_000

/**
 * The groups of the suite whose streams live for one or two seconds. They fail if a response takes half a
 * second, as on a machine with other work.
 */
const IN_REAL_TIME = /^(TTL Expiration Behavior|Fork - TTL and Expiry)$/

describe.skipIf(HAS_POSTGRES /* `npm run test:postgres` runs it on PostgreSQL alone */)(
  'the published suite',
  { tags: ['slow'] },
  () => runSuite(async () => memory(), { inRealTime: false }),
)

describe('the published suite, on streams that expire', { tags: ['nightly'] }, () =>
  runSuite(async () => memory(), { inRealTime: true }),
)

describe.runIf(HAS_POSTGRES)(
  `the published suite on PostgreSQL${withoutPostgres}`,
  { tags: ['slow'] },
  () => {
    let cluster: Cluster
    afterAll(() => cluster.dispose())
    const startCluster = async () => {
      cluster = await Cluster.start()
      return postgres({ connectionString: cluster.connectionString })
    }
    runSuite(startCluster, { inRealTime: false })
  },
)

/**
 * Lets requests take as long as a busy machine needs: the suite aborts them after half a second to five
 * seconds, and takes some of those aborts for a success. All of them end by themselves.
 */
function withoutAborts(): () => void {
  const { setTimeout } = globalThis
  const patient = (callback: (...args: unknown[]) => void, delayMs?: number, ...args: unknown[]) => {
    const isAbort = String(callback) === '() => controller.abort()'
    return setTimeout(callback, isAbort ? ABORT_MS : delayMs, ...args)
  }
  globalThis.setTimeout = Object.assign(patient, setTimeout)
  return () => {
    globalThis.setTimeout = setTimeout
  }
}

/** Runs either the tests whose outcome depends on real time, or all others. */
function runSuite(
  newStorage: () => Promise<Storage>,
  { inRealTime }: { readonly inRealTime: boolean },
): void {
  const options = { baseUrl: '', longPollTimeoutMs: LONG_POLL_MS }
  let hw: Engine
  let server: NodeServer
  let restoreAborts: () => void

  beforeAll(async () => {
    hw = await open({ storage: await newStorage() })
    const durableStreams = { basin: 'durable', longPollMs: LONG_POLL_MS }
    server = await serve(hw, { auth: 'none', cors: true, durableStreams })
    options.baseUrl = server.url
    restoreAborts = withoutAborts()
  })
  afterAll(async () => {
    restoreAborts()
    await Promise.all([server.close(), hw.close()])
  })
  beforeEach(({ task, skip }) => {
    skip(IN_REAL_TIME.test(task.suite?.name ?? '') !== inRealTime, 'it is part of the other run')
  })

  runConformanceTests(options)
}
