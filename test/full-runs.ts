/**
 * The test files that `npm test` leaves out. Each takes seconds, and other files test the same code in a
 * smaller way. `npm run test:full` and `.ci/run` run them.
 */
export const ONLY_IN_FULL_RUNS = [
  // Random and long runs, and the tests that they detect defects. `.ci/run` runs the campaigns for longer.
  'test/campaigns/{crash,devices,endurance,fuzz,kill,race,soak,stalled}/**',
  'test/campaigns/linearizability/{broken-engines,chromium,http}.test.ts',
  'test/campaigns/simulation/{broken,broken-rules}.test.ts',
  // Installations of the package, and compilers. `entries` and `browser-entries` remain.
  'test/packaging/{api-reports,bundlers,debugging,docker,framework-apps,init}.test.ts',
  'test/packaging/{public-calls,react-app,service-worker,transformed,zstd-module}.test.ts',
  // Chromium. `engine` and `http/client` remain, and the tests of the console that need no page.
  'test/browser/{access,encryption,mirror,react}.test.ts',
  'test/browser/http/{disconnects,durable-streams,handler,rebinding,server,service-worker}.test.ts',
  'test/browser/sync/killed-server.test.ts',
  'test/browser/indexeddb/*.test.ts',
  'test/console/{appearance,daily-work,failures,mounted,served,streams}.test.ts',
  // Compilers, shells and Chromium run what the pages show. `examples` and all that reads the pages remain.
  'test/docs/{command-line,docstring-samples,docstrings,guide-code,guides,shown-members}.test.ts',
  'test/docs/{in-the-browser,service-worker,site,without-a-bundler}.test.ts',
  // The examples in Chromium and in processes. Their own tests remain, and `serving`.
  'test/examples/{durable-streams-libraries,level-storage,live-logs,published-client}.test.ts',
  'test/examples/{local-first-chat*,resumable-chat,shared-todo,stopping,work-queue}.test.ts',
  // PostgreSQL. A part of its conformance suite remains.
  'test/storage/postgres/{known-head,lost-commits,prepared-statements,reclaim,server-clock,storage}.test.ts',
  // Processes of the command line and of servers, and each operation of the client under each permission.
  'test/cli/{optional-ciphers,processes,silent-server,transfer,transfer-pipes}.test.ts',
  'test/interop/{access-sessions,access-table,cli,patterns,secrets,secrets-cli}.test.ts',
  'test/storage/filesystem/lock/lock-contenders.test.ts',
  'test/sync/killed-server.test.ts',
  'test/bench/bench.test.ts',
  // Damage and crashes at every place of a directory. Other tests of the same files have one place each.
  'test/storage/filesystem/{segment/failed-adoption,slow-failing-disk,verify/damage}.test.ts',
  // The conformance suite once more. It remains on each storage.
  'test/storage/conformance.test.ts',
  'test/testing/faulty-storage-conformance.test.ts',
]

/** The test files that `npm test` does not repeat in a vitest project; it runs them in another. */
export const REPEATED_IN_FULL_RUNS = {
  /** What the engine asks a storage for is the same as in memory. */
  filesystem: [
    'test/engine/api/{await-using,call-options,closed-streams,detached-buffers,producer,read-budget}.test.ts',
    'test/engine/encryption/{damage,live}.test.ts',
    'test/engine/log/{stored-batch,stream-cache}.test.ts',
    'test/engine/service/{admission,open-sessions,retention}.test.ts',
  ],
  /** Most calls are rejected before anything is sent, and background work is the engine's. */
  handler: [
    'test/engine/api/{malformed-input,producer,retried-producers}.test.ts',
    'test/engine/service/retention.test.ts',
  ],
  /** The project `handler` runs the same requests without sockets. */
  server: ['test/engine/api/{await-using,call-options,json-stream,producer,retried-producers}.test.ts'],
}
