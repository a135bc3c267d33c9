import type { Measurement } from '../harness/measurement.ts'

const program = 'in-process'
const follower = { records: 10, bytes: 256, followers: 1 }

export const inProcessRows: Readonly<Record<string, Measurement>> = {
  'memory-follow': {
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
  },
}
