import type { Measurement } from '../harness/measurement.ts'

const program = 'in-process'
const single = { records: 1, bytes: 256 }
const random = { bytes: 1_024 }

const follower = { records: 10, bytes: 256, followers: 1 }

const followed: Measurement = {
  work: 'in process: live, batches of 10 × 256 B, one follower',
  each: 'a delivered record',
  most: 50_000,
  ours: { program, side: 'headwater followed', params: follower },
  rivals: [
    {
      against: 'an RxJS `Subject` of batches, which keeps nothing',
      contestant: { program, side: 'subject followed', params: follower },
    },
    {
      against: 'the same, of copies: one that is kept, and one that is delivered',
      contestant: { program, side: 'copies followed', params: follower },
      atLeast: 0.3,
    },
  ],
}

export const inProcessRows: Readonly<Record<string, Measurement>> = {
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
  'memory-follow': followed,
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
