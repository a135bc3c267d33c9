import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import type { Plugin } from 'vite'
import { defineConfig } from 'vitest/config'
import { bundledAssetsOfVite } from './scripts/bundled-assets.mjs'
import { HAS_POSTGRES } from './test/storage/postgres/cluster.ts'

/** Resolves the names of the package to its sources. */
const OWN_PACKAGE = Object.entries({
  headwater: 'src/index.ts',
  'headwater/http': 'adapters/http/index.ts',
  'headwater/durable-streams': 'adapters/durable-streams/index.ts',
  'headwater/client': 'adapters/client/index.ts',
  'headwater/sync': 'adapters/sync/index.ts',
  'headwater/fold': 'adapters/fold/index.ts',
  'headwater/storage': 'adapters/storage/index.ts',
  'headwater/usage': 'src/usage/index.ts',
  'headwater/memory': 'adapters/storage/memory/index.ts',
  'headwater/testing': 'adapters/testing/index.ts',
}).map(([name, path]) => ({
  find: new RegExp(`^${name}$`),
  replacement: fileURLToPath(new URL(path, import.meta.url)),
}))

const inTests = (path: string) => fileURLToPath(new URL(`test/${path}`, import.meta.url))

/** They bring their own storage. */
const WITHOUT_STORAGE = [
  'test/engine/api/{json-stream,malformed-input,read-fairness,returned-bytes}.test.ts',
  'test/engine/service/background.test.ts',
]

/** The tests whose storage calls depend on what the engine does. */
const ENGINE_TESTS = [
  'test/engine/{api,log,service,streams}/*.test.ts',
  'test/engine/encryption/{reading,stored-blocks}.test.ts',
  'test/usage/storage-gauges.test.ts',
]

/** The tests of the API, which a client has too. */
const API_TESTS = ['test/engine/api/*.test.ts', 'test/engine/service/retention.test.ts']

/** The tests whose outcome can depend on a database that other processes change, and whose requests fail. */
const POSTGRES_TESTS = [
  'test/engine/api/{append-session,evicted-streams,idempotent-appends,read,read-session,stream}.test.ts',
  'test/engine/service/{basin-service,cleanup,retention,stream-expiry}.test.ts',
  'test/engine/access/tokens.test.ts',
  'test/transfer/restore-stream.test.ts',
  'test/usage/storing.test.ts',
]

const NOT_THROUGH_CLIENT = [
  // They test how an engine shares its memory and time among reads, and use it as fast as they can.
  'test/engine/api/{read-budget,read-fairness}.test.ts',
]

const NOT_THROUGH_SERVER = [
  // Most calls are rejected before anything is sent; the project `handler` runs the others.
  'test/engine/api/malformed-input.test.ts',
  // What it tests happens in the engine; the project `handler` runs it.
  'test/engine/service/retention.test.ts',
]

/** Properties draw the same examples in each run; see the file. */
const seededProperties: Plugin = {
  name: 'seeded-properties',
  enforce: 'pre',
  resolveId: (source, importer) => {
    const seeded = inTests('support/seeded-properties.ts')
    return source === 'fast-check' && importer !== seeded ? seeded : undefined
  },
}

/** Tests of the API open engines through a client. */
const throughClient: Plugin = {
  name: 'through-client',
  enforce: 'pre',
  resolveId: (source, importer) =>
    /\/src\/index\.ts$/.test(source) && /\/test\/(engine\/|support\/engine\.ts)/.test(importer ?? '')
      ? inTests('support/connected/index.ts')
      : undefined,
}

export default defineConfig({
  plugins: [bundledAssetsOfVite, seededProperties],
  test: {
    // Many tests wait for processes, servers and disks. One worker a core leaves a third of the time unused.
    maxWorkers: Math.ceil(availableParallelism() * 1.5),
    // Loading what a file imports takes longer than its tests. Helpers that keep something use
    // `afterEachFile`.
    isolate: false,
    tags: [
      { name: 'slow', description: 'takes over 250 ms, or needs more than Node: runs in `.ci/run`' },
      { name: 'nightly', description: 'takes minutes, or waits in real time: runs in `npm run campaigns`' },
    ],
    setupFiles: inTests('support/setup.ts'),
    // What a test that passes prints, such as a failure that it injects, hides what one that fails prints.
    silent: 'passed-only',
    // Reporters show the duration of a test from here on.
    slowTestThreshold: 250,
    // These only end what hangs: how long a test takes on a busy machine means nothing.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 60_000, interval: 10 } },
    projects: [
      { extends: true, test: { name: 'all', include: ['test/**/*.test.ts'] } },
      // The engine again, on real directories.
      {
        extends: true,
        test: {
          name: 'filesystem',
          include: ENGINE_TESTS,
          exclude: WITHOUT_STORAGE,
          env: { TEST_STORAGE: 'filesystem' },
        },
      },
      // The API again, through a client of a handler and of a server.
      ...(['handler', 'server'] as const).map((access) => ({
        extends: true as const,
        plugins: [throughClient],
        test: {
          name: access,
          include: API_TESTS,
          exclude: [...NOT_THROUGH_CLIENT, ...(access === 'server' ? NOT_THROUGH_SERVER : [])],
          runner: inTests('support/connected/runner.ts'),
          env: { TEST_ACCESS: access },
        },
      })),
      // And on PostgreSQL behind a proxy that fails: `npm run test:postgres`.
      ...(HAS_POSTGRES
        ? [
            {
              extends: true as const,
              test: {
                name: 'postgres',
                include: POSTGRES_TESTS,
                env: { TEST_STORAGE: 'postgres' },
                // Virtual weeks are thousands of requests, and CI starts other work beside them.
                testTimeout: 400_000,
                globalSetup: 'test/storage/postgres/engine-tests.ts',
              },
            },
          ]
        : []),
      {
        extends: true,
        resolve: { alias: OWN_PACKAGE },
        test: {
          name: 'examples',
          include: ['examples/**/*.test.ts'],
          // Takes 15 seconds, and has no tag, because the configuration of users has none: `npm run
          // check:examples` runs it.
          exclude: ['examples/level-storage/conformance.test.ts', '**/node_modules/**'],
          env: { TEST_RUN: '' },
        },
      },
    ],
  },
})
