import type { Measurement } from '../harness/measurement.ts'

const program = 'cli'

export const cliRows: Readonly<Record<string, Measurement>> = {
  'cli-append': {
    work: '`cat` of {size} lines of 100 bytes into `headwater append`, filesystem',
    each: 'a line',
    size: 1_000_000,
    exactly: 'size',
    ours: { program, side: 'headwater append' },
    rivals: [
      {
        against: '`cat` into a file, and one `fsync`',
        contestant: { program, side: 'cat' },
      },
      {
        against: '`cat` into a bare program of Node that finds lines, and sums, writes and syncs chunks',
        contestant: { program, side: 'bare lines' },
        atLeast: 0.33,
      },
    ],
  },
  'cli-follow': {
    work: 'an append over HTTP until `headwater tail -f` has printed it',
    each: 'a line',
    most: 500,
    ours: { program, side: 'headwater tail' },
    rivals: [{ against: '', atMostMicroseconds: 50_000 }],
  },
}
