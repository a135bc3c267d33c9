import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'

/** The package by its names, as its users import it, from the sources. */
const OWN_PACKAGE = Object.entries({
  headwater: 'src/index.ts',
  'headwater/http': 'adapters/http/index.ts',
  'headwater/memory': 'adapters/storage/memory/index.ts',
  'headwater/testing': 'adapters/testing/index.ts',
}).map(([name, path]) => ({
  find: new RegExp(`^${name}$`),
  replacement: fileURLToPath(new URL(path, import.meta.url)),
}))

export default defineConfig({
  test: {
    // By default one core is left idle, which is half of a small machine.
    maxWorkers: '100%',
    // What does not end at all ends then; how long something takes on a busy machine says nothing.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    projects: [
      { extends: true, test: { name: 'all', include: ['test/**/*.test.ts'] } },
      // What is above the storages once more, on real directories.
      {
        extends: true,
        test: {
          name: 'filesystem',
          include: ['test/engine/**/*.test.ts', 'test/http/**/*.test.ts'],
          env: { TEST_STORAGE: 'filesystem' },
        },
      },
      {
        extends: true,
        resolve: { alias: OWN_PACKAGE },
        test: { name: 'examples', include: ['examples/**/*.test.ts'] },
      },
    ],
  },
})
