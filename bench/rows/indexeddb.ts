import type { Contestant, Measurement } from '../harness/measurement.ts'

/** The sides are those of `browser/page.ts`. */
export const indexedDbRows: Readonly<Record<string, Measurement>> = {
  'indexeddb-append': {
    work: 'IndexedDB: awaited appends of one record of 256 B',
    each: 'an append',
    size: 100,
    exactly: 1,
    rounds: 2,
    ours: page('append awaited'),
    rivals: [
      {
        against: 'a bare `put`, each in its own strict transaction',
        contestant: page('bare put'),
        atLeast: 0.4,
      },
    ],
  },
}

function page(side: string): Contestant {
  return { program: 'indexeddb', side: 'page', params: { side } }
}
