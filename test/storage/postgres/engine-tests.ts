import type { TestProject } from 'vitest/node'
import { Cluster } from './cluster.ts'
import { Compatibility } from './compatibility.ts'
import { WireProxy } from './wire-proxy.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** Where the tests of the vitest project `postgres` connect. */
    postgres: string
  }
}

/** Starts a cluster behind the proxy of the compatibility tests, for the vitest project `postgres`. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const compatibility = new Compatibility(2, 0.005)
  const cluster = await Cluster.start()
  const proxy = await WireProxy.start({
    port: () => cluster.port,
    actionOf: (statement, connection) => compatibility.actionOf(statement, connection),
  })
  project.provide('postgres', proxy.connectionString)
  return async () => {
    await proxy.close()
    await cluster.dispose()
  }
}
