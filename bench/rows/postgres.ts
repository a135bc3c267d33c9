import type { Measurement } from '../harness/measurement.ts'

const program = 'postgres'

/** Requires PostgreSQL. Each side has a cluster of its own, and takes its turns while the others are idle. */
export const postgresRows: Readonly<Record<string, Measurement>> = {
  'postgres-append': {
    work: 'PostgreSQL: one writer, 1 KiB an append',
    each: 'an append',
    most: 5_000,
    ours: { program, side: 'headwater' },
    rivals: [
      {
        against: 'a bare loop of `INSERT` with the same driver',
        contestant: { program, side: 'bare' },
        atLeast: 0.7,
      },
    ],
  },
}
