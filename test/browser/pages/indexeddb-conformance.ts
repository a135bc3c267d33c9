import { type Durability, indexedDb } from '../../../adapters/storage/indexeddb/index.ts'
import { conformanceSuite } from '../../../src/storage/conformance/index.ts'

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
    randomOperations: 150,
  })
}

/** The titles of the tests that apply. */
export function titles(durability: Durability): string[] {
  return suite(durability).flatMap(({ title, skip }) => (skip === undefined ? [title] : []))
}

/** Throws when the storage fails the test. */
export async function run(durability: Durability, title: string): Promise<void> {
  await suite(durability)
    .find((one) => one.title === title)!
    .run()
}

/** Rejects when somebody still has it open. */
function remove(name: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const request = indexedDB.deleteDatabase(name)
    request.onsuccess = () => resolve()
    request.onblocked = () => reject(new Error(`${name} is still open`))
  })
}
