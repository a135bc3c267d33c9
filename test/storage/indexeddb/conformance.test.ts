import 'fake-indexeddb/auto'
import { deleteDB } from 'idb'
import { describe, expect, test } from 'vitest'
import { conformanceSuite } from '../../../adapters/conformance/index.ts'
import { indexedDb } from '../../../adapters/storage/indexeddb/index.ts'
import type { Durability } from '../../../src/storage/contract.ts'
import { byRun } from '../../support/run-size.ts'

const DURABILITIES = byRun<Durability[]>({ quick: ['power-loss'], full: ['power-loss', 'process-crash'] })

/** In Node, on fake-indexeddb. `test/browser` runs the suite in a browser. */
describe.each(DURABILITIES)('IndexedDB conforms to the storage contract (%s)', (durability) => {
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
    seeds: durability === 'power-loss' ? byRun({ quick: [1], full: [1, 2] }) : [3, 4, 5],
    notificationMsMax: 60_000,
  })
  for (const { title, skip, run } of suite) {
    if (skip !== undefined) test.skip(`${title} (${skip})`)
    else test(title, run)
  }

  test('skips only tests of other capabilities', () => {
    const reasons = new Set(suite.map(({ skip }) => skip))
    expect(reasons).toEqual(
      new Set([
        undefined,
        'the storage may return memory that it keeps',
        'the storage is shared',
        "notifications are 'hint'",
      ]),
    )
  })
})
