import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    // By default one core is left idle, which is half of a small machine.
    maxWorkers: '100%',
    testTimeout: 30_000,
    hookTimeout: 30_000,
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
    ],
  },
})
