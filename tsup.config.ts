import { defineConfig } from 'tsup'

/** One entry for each subpath of `package.json`. Code that they share becomes chunks, so there is one copy of every class. */
export default defineConfig({
  entry: {
    index: 'src/index.ts',
    memory: 'adapters/storage/memory/index.ts',
    http: 'adapters/http/index.ts',
    node: 'adapters/node/index.ts',
    testing: 'adapters/testing/index.ts',
    conformance: 'src/storage/conformance/index.ts',
    cli: 'adapters/cli/main.ts',
  },
  format: 'esm',
  target: 'es2022',
  platform: 'neutral',
  splitting: true,
  treeshake: true,
  sourcemap: true,
  clean: true,
  dts: true,
})
