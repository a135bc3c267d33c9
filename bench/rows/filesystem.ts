import type { Measurement } from '../harness/measurement.ts'

const program = 'filesystem'

const rows: Readonly<Record<string, Measurement>> = {
  'disk-batches': {
    work: 'filesystem: batches of 1,000 × 1 KiB',
    each: 'a batch',
    most: 300,
    ours: { program, side: 'headwater', params: { records: 1_000 } },
    rivals: [
      {
        against: '`better-sqlite3`, WAL, `synchronous=FULL`, a transaction each',
        contestant: { program, side: 'sqlite batches' },
        atLeast: 2,
      },
      {
        against: 'a bare loop of `FileHandle.write` and `datasync`',
        contestant: { program, side: 'bare', params: { records: 1_000 } },
      },
      {
        against: 'the same loop with a copy of the records and a checksum',
        contestant: { program, side: 'bare checked' },
        atLeast: 0.5,
      },
      {
        against: '`classic-level`, `batch` with `sync`',
        contestant: { program, side: 'level batches' },
        atLeast: 4,
      },
    ],
  },
  'disk-writers': {
    work: 'filesystem: 64 writers on 64 streams, 1 KiB an append',
    each: 'an append',
    ours: { program, side: 'headwater writers' },
    rivals: [
      {
        against: '`classic-level`, 64 concurrent puts with `sync`',
        contestant: { program, side: 'level writers' },
        atLeast: 4,
      },
      {
        against: 'the same with `headwater/sqlite`',
        contestant: { program, side: 'headwater writers', params: { onSqlite: true } },
      },
    ],
  },
}

/** All, because one program holds all sides. */
export const filesystemRows: typeof rows = Object.fromEntries(
  Object.entries(rows).map(([name, row]) => [name, { ...row, needsPeers: true }]),
)
