import type { Measurement } from '../harness/measurement.ts'

const program = 'scale'

export const scaleRows: Readonly<Record<string, Measurement>> = {
  'opening-million': {
    work: 'open {size} streams with a record each, filesystem',
    each: 'an opening',
    size: 1_000_000,
    exactly: 1,
    isFresh: true,
    ours: { program, side: 'open', fill: 'fill' },
    rivals: [
      { against: '', atMostMicroseconds: 5_000_000 },
      {
        against: '1073 bytes a stream, memory',
        contestant: { program, side: 'hold bytes', params: { bytes: 1_073 } },
        by: 'growth',
        atLeast: 1,
      },
    ],
  },
}
