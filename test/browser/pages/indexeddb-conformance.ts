import { conformanceSuite } from '../../../adapters/conformance/index.ts'
import { indexedDb } from '../../../adapters/storage/indexeddb/index.ts'
import type { Durability } from '../../../src/storage/contract.ts'

let databases = 0

function suite(durability: Durability) {
  return conformanceSuite({
    manifest: indexedDb('', { durability }).manifest,
    make: async () => {
      const name = `conformance-${durability}-${databases++}`
      const open = () => indexedDb(name, { durability })
      return { storage: open(), reopen: async () => open(), dispose: () => remove(name) }
    },
    seeds: [1, 2],
    notificationMsMax: 60_000,
    randomOperations: 150,
  })
}

/** The titles of the tests that apply. */
export function titles(durability: Durability): string[] {
  return suite(durability).flatMap(({ title, skip }) => (skip === undefined ? [title] : []))
}

/** Rejects if the storage fails the test. */
export async function run(durability: Durability, title: string): Promise<void> {
  await suite(durability)
    .find((one) => one.title === title)!
    .run()
}

/** Rejects if a connection is still open. */
function remove(name: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const request = indexedDB.deleteDatabase(name)
    request.onsuccess = () => resolve()
    request.onblocked = () => reject(new Error(`${name} is still open`))
  })
}
