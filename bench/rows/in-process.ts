import type { Measurement } from '../harness/measurement.ts'

const program = 'in-process'
const batches = { records: 1_000, bytes: 256 }
const single = { records: 1, bytes: 256 }
const random = { bytes: 1_024 }

export const inProcessRows: Readonly<Record<string, Measurement>> = {
  'memory-batches': {
    work: 'in process: batches of 1,000 × 256 B, memory',
    each: 'a batch',
    most: 1_000,
    ours: { program, side: 'headwater', params: batches },
    rivals: [
      {
        against: 'pushing the same records onto an array',
        contestant: { program, side: 'array', params: batches },
        atLeast: 0.3,
      },
    ],
  },
  'memory-append': {
    work: 'in process: one record awaited, memory',
    each: 'an append',
    most: 500_000,
    ours: { program, side: 'headwater', params: single },
    rivals: [
      {
        against: 'an awaited promise and a push',
        contestant: { program, side: 'awaited array', params: single },
        atMostMicroseconds: 3,
      },
    ],
  },
  'memory-follow': followed(1),
  'memory-follow-100': followed(100, 0.3),
  'memory-random-read': {
    work: 'in process: one record at random of {size}, appended in batches of 1,000 × 1 KiB, memory',
    each: 'a read',
    size: 200_000,
    ours: { program, side: 'headwater random read', params: random },
    rivals: [
      {
        against: 'access to an array, and a copy',
        contestant: { program, side: 'array random read', params: random },
        atMostMicroseconds: 10,
      },
    ],
  },
}

function followed(followers: number, atLeast?: number): Measurement {
  const params = { records: 10, bytes: 256, followers }
  return {
    work: `in process: live, batches of 10 × 256 B, followers: ${followers}`,
    each: 'a delivered record',
    most: 50_000,
    ours: { program, side: 'headwater followed', params },
    rivals: [
      {
        against: 'an RxJS `Subject` of batches, which keeps nothing',
        contestant: { program, side: 'subject followed', params },
        atLeast,
      },
      ...(followers === 1
        ? [
            {
              against: 'the same, of copies: one that is kept, and one that is delivered',
              contestant: { program, side: 'copies followed', params },
              atLeast: 0.3,
            },
          ]
        : []),
    ],
  }
}
