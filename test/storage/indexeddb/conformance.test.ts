import 'fake-indexeddb/auto'
import { deleteDB } from 'idb'
import { describe, expect, test } from 'vitest'
import { type Durability, indexedDb } from '../../../adapters/storage/indexeddb/index.ts'
import { conformanceSuite } from '../../../src/storage/conformance/index.ts'

/** In Node, on an imitation of a browser's database; `test/browser` has the same in a browser. */
describe.each<Durability>(['strict', 'relaxed'])(
  'IndexedDB conforms to the storage contract (%s)',
  (durability) => {
    let databases = 0
    const suite = conformanceSuite({
      manifest: indexedDb('', { durability }).manifest,
      make: async () => {
        const name = `conformance-${durability}-${databases++}`
        return {
          storage: indexedDb(name, { durability }),
          reopen: async () => indexedDb(name, { durability }),
          dispose: () => deleteDB(name),
        }
      },
    })
    for (const { title, skip, run } of suite) {
      if (skip !== undefined) test.skip(`${title} (${skip})`)
      else test(title, run)
    }

    test('only what other storages promise is skipped', () => {
      const reasons = new Set(suite.map(({ skip }) => skip))
      expect(reasons).toEqual(new Set([undefined, 'the storage is shared', "notifications are 'hint'"]))
    })
  },
)
