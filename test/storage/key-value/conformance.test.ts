import { describe, test } from 'vitest'
import { conformanceSuite } from '../../../adapters/conformance/index.ts'
import { virtualClock } from '../../../adapters/testing/index.ts'
import { byRun } from '../../support/run-size.ts'
import { OrderedMap, orderedMapStorage } from './ordered-map.ts'

const KINDS: [title: string, options: Parameters<typeof orderedMapStorage>[1]][] = [
  ['that is shared', { shared: true }],
  ['with a single writer', {}],
  ['with values of at most 64 KiB', { valueBytesMax: 65_536 }],
]

describe.each(byRun({ quick: KINDS.slice(0, 1), full: KINDS }))(
  'a storage in an ordered map %s',
  (_, options) => {
    const suite = conformanceSuite({
      manifest: orderedMapStorage(new OrderedMap(), options).manifest,
      make: async () => {
        const map = new OrderedMap()
        const make = () => orderedMapStorage(map, options)
        return { storage: make(), reopen: async () => make(), dispose: async () => {} }
      },
      clock: virtualClock(),
    })
    for (const { title, skip, run } of suite) {
      if (skip === undefined) test(title, run)
      else test.skip(`${title} (${skip})`)
    }
  },
)
