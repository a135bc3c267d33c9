/**
 * Engine, client and the storages of browsers as one file, for pages without a bundler.
 *
 * The build adds all dependencies. An import map can point the names of the four entries to it.
 *
 * @packageDocumentation
 */
export * from '../../src/index.ts'
export * from '../client/index.ts'
export * from '../storage/indexeddb/index.ts'
export * from '../storage/memory/index.ts'
