import { conformanceSuite } from '../../../adapters/conformance/index.ts'
import { indexedDb } from '../../../adapters/storage/indexeddb/index.ts'

let databases = 0

function suite() {
  return conformanceSuite({
    manifest: indexedDb('').manifest,
    make: async () => {
      const name = `conformance-${databases++}`
      const open = () => indexedDb(name)
      return { storage: open(), reopen: async () => open(), dispose: () => remove(name) }
    },
    seeds: [1],
    notificationMsMax: 60_000,
    randomOperations: 50,
  })
}

/** The titles of the tests that apply. */
export function titles(): string[] {
  return suite().flatMap(({ title, skip }) => (skip === undefined ? [title] : []))
}

/** Rejects if the storage fails the test. */
export async function run(title: string): Promise<void> {
  await suite()
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
