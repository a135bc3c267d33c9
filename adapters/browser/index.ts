/**
 * The library for pages without a bundler: the build turns this into one module with all dependencies. An
 * import map can point the names of the three entries to it.
 */
export * from '../../src/index.ts'
export * from '../storage/indexeddb/index.ts'
export * from '../storage/memory/index.ts'
