/**
 * The test files that `npm test` leaves out. Each takes seconds, and other files test the same code in a
 * smaller way. `npm run test:full` and `.ci/run` run them.
 */
export const ONLY_IN_FULL_RUNS = [
  // Random and long runs, and the tests that they detect defects. `.ci/run` runs the campaigns for longer.
  'test/campaigns/{crash,devices,endurance,fuzz,race,soak,stalled}/**',
  'test/campaigns/kill/kill.test.ts',
  'test/campaigns/linearizability/{broken-engines,chromium,http}.test.ts',
  'test/campaigns/simulation/broken.test.ts',
  // Installations of the package. `entries` and `browser-entries` remain.
  'test/packaging/{bundlers,debugging,docker,react-app,service-worker}.test.ts',
  // Chromium. `engine`, `react`, `http/client`, `http/handler` and `indexeddb/tabs` remain.
  'test/browser/{access,encryption,mirror}.test.ts',
  'test/browser/http/{disconnects,rebinding,server,service-worker}.test.ts',
  'test/browser/sync/killed-server.test.ts',
  'test/browser/indexeddb/{conformance,connection,private-window,quota,survival}.test.ts',
  'test/console/{appearance,failures,mounted,streams}.test.ts',
  'test/docs/{in-the-browser,service-worker,site,without-a-bundler}.test.ts',
  // The examples in Chromium, and a storage of theirs. Their own tests remain.
  'test/examples/{level-storage,published-client}.test.ts',
  'test/examples/{durable-streams-libraries,local-first-chat*,resumable-chat,shared-todo}.test.ts',
  // PostgreSQL. Its conformance suite remains.
  'test/storage/postgres/{known-head,lost-commits,prepared-statements,reclaim,server-clock,storage}.test.ts',
  // Processes of the command line, and of the published client, and each operation under each permission.
  'test/cli/processes.test.ts',
  'test/interop/{access-table,cli,patterns,secrets-cli}.test.ts',
]
