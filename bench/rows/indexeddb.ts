import type { Contestant, Measurement } from '../harness/measurement.ts'

const DEXIE_READ = { against: 'Dexie, `orderBy`, `toArray`', contestant: page('Dexie read') }

const BARE_PUT = {
  against: 'a bare `put`, each in its own strict transaction',
  contestant: page('bare put'),
}

/** The sides are those of `browser/page.ts`. */
const rows: Readonly<Record<string, Measurement>> = {
  'indexeddb-append': {
    work: 'IndexedDB: awaited appends of one record of 256 B',
    each: 'an append',
    size: 100,
    exactly: 1,
    rounds: 2,
    ours: page('append awaited'),
    rivals: [{ ...BARE_PUT, atLeast: 0.4 }],
  },
  'indexeddb-append-many': {
    work: 'IndexedDB: awaited appends of one record of 256 B, {size} a turn',
    each: 'an append',
    size: 1_000,
    exactly: 1,
    rounds: 2,
    ours: page('append awaited'),
    rivals: [BARE_PUT],
  },
  'indexeddb-concurrent': {
    work: 'IndexedDB: {size} concurrent appends',
    each: 'an append',
    size: 100,
    exactly: 1,
    rounds: 2,
    ours: page('append at once'),
    rivals: [{ against: 'awaited ones', contestant: page('append awaited'), atLeast: 10 }],
  },
  'indexeddb-batches': {
    work: 'IndexedDB: batches of 1,000 × 256 B',
    each: 'a batch',
    size: 20,
    exactly: 1,
    ours: page('append batches'),
    rivals: [
      {
        against: 'Dexie, `bulkAdd` of a row a record, strict',
        contestant: page('Dexie batches'),
        atLeast: 10,
      },
    ],
  },
  'indexeddb-read': {
    work: 'IndexedDB: read {size} × 256 B in order, appended in batches of 1,000',
    each: 'a record',
    size: 10_000,
    exactly: 5,
    rounds: 2,
    ours: page('read batches'),
    rivals: [{ ...DEXIE_READ, atLeast: 5 }],
  },
  'indexeddb-read-singles': {
    work: 'IndexedDB: read {size} × 256 B in order, appended one by one',
    each: 'a record',
    size: 10_000,
    exactly: 5,
    rounds: 2,
    ours: page('read singles'),
    rivals: [DEXIE_READ],
  },
}

/** Dexie is in the page of all sides. */
export const indexedDbRows: Readonly<Record<string, Measurement>> = Object.fromEntries(
  Object.entries(rows).map(([name, row]) => [name, { ...row, needsPeers: true, usesSources: true }]),
)

function page(side: string): Contestant {
  return { program: 'indexeddb', side: 'page', params: { side } }
}
