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
  'postgres-writers': {
    work: 'PostgreSQL: 64 writers on one stream, 1 KiB an append',
    each: 'an append',
    most: 50_000,
    ours: { program, side: 'headwater writers' },
    rivals: [
      {
        against: '64 bare loops of `INSERT` on 64 connections',
        contestant: { program, side: 'bare writers' },
        atLeast: 3,
      },
      {
        against: 'a bare loop of `INSERT` of 64 rows, one after the other',
        contestant: { program, side: 'bare groups' },
        atLeast: 0.5,
      },
    ],
  },
  'postgres-read': {
    work: 'PostgreSQL: read {size} × 1 KiB in order',
    each: 'a record',
    size: 1_000_000,
    exactly: 1,
    ours: { program, side: 'headwater reading' },
    rivals: [
      {
        against: 'a bare `SELECT` of the same rows, in pages',
        contestant: { program, side: 'bare reading' },
        atLeast: 0.8,
      },
    ],
  },
  'postgres-processes': {
    work: 'PostgreSQL: three processes, each with a stream and 64 writers, 1 KiB an append',
    each: 'an append',
    most: 50_000,
    ours: { program, side: 'headwater processes', params: { processes: 3 } },
    rivals: [
      {
        against: 'one such process',
        contestant: { program, side: 'headwater processes', params: { processes: 1 } },
      },
    ],
  },
}
