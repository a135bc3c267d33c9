/// <reference types="vite/client" />

const modules = import.meta.glob([
  '../../../src/**/*.ts',
  '../../../adapters/{client,sync,storage/memory}/**/*.ts',
])

/**
 * Loads every module that the library might load on first use. How long that takes must not change the order
 * of what happens.
 */
export async function loadModules(): Promise<void> {
  await Promise.all(Object.values(modules).map((load) => load()))
}
