import type { Measurement } from '../harness/measurement.ts'

/** Of a record that is mirrored. */
const bytes = 256

export const syncRows: Readonly<Record<string, Measurement>> = {
  mirror: {
    work: `sync: mirror of {size} × ${bytes} B into memory, against a read that keeps nothing`,
    each: 'a record',
    size: 1_000_000,
    exactly: 1,
    ours: { program: 'mirrors', side: 'mirror', params: { bytes } },
    rivals: [
      {
        against: '`readSession` of `@s2-dev/streamstore`',
        contestant: { program: 'clients', side: 'published read', params: { bytes } },
        atLeast: 0.5,
      },
    ],
  },
}
