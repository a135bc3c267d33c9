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
  'disk-append': {
    work: 'filesystem: one writer, 1 KiB an append',
    each: 'an append',
    ours: { program, side: 'headwater', params: { records: 1 } },
    rivals: [
      {
        against: 'a bare loop of `FileHandle.write` and `datasync`',
        contestant: { program, side: 'bare', params: { records: 1 } },
        atLeast: 0.7,
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
    ],
  },
  'disk-read': {
    work: 'filesystem: read {size} × 1 KiB in order',
    each: 'a record',
    size: 1_000_000,
    exactly: 1,
    ours: { program, side: 'headwater reading' },
    rivals: [
      {
        against: '`classic-level`, `nextv(1000)`',
        contestant: { program, side: 'level reading' },
        atLeast: 2,
      },
      {
        against: '`better-sqlite3`, pages of 1,000',
        contestant: { program, side: 'sqlite reading' },
        atLeast: 2,
      },
      {
        against: 'a bare loop of reads of 1 MiB with a checksum each',
        contestant: { program, side: 'checked reading' },
        atLeast: 0.5,
      },
    ],
  },
  'disk-seek-time': seek('timestamp', 1, 0.3),
  'disk-seek-number': seek('seqNum', 1, 0.3),
  'disk-seek-page': seek('timestamp', 1_000),
}

/** All, because one program holds all sides. */
export const filesystemRows: typeof rows = Object.fromEntries(
  Object.entries(rows).map(([name, row]) => [name, { ...row, needsPeers: true }]),
)

function seek(by: 'timestamp' | 'seqNum', records: number, atLeast?: number): Measurement {
  const params = { by, records }
  const named = by === 'timestamp' ? 'timestamp' : 'sequence number'
  return {
    work: `filesystem: seek by ${named} in {size} records, appended in batches of 1,000; first ${records.toLocaleString('en')}`,
    each: 'a seek',
    size: 1_000_000,
    ours: { program, side: 'headwater seeking', params },
    rivals: [
      {
        against: '`better-sqlite3` with an index',
        contestant: { program, side: 'sqlite seeking', params },
        ...(atLeast === undefined ? {} : { atLeast }),
      },
    ],
  }
}
