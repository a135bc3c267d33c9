import type { Measurement } from '../harness/measurement.ts'

const program = 'scale'

export const scaleRows: Readonly<Record<string, Measurement>> = {
  opening: opening(100_000, 200_000),
  'opening-million': opening(1_000_000, 1_000_000),
}

function opening(size: number, atMostMicroseconds: number): Measurement {
  return {
    work: 'open {size} streams with a record each, filesystem',
    each: 'an opening',
    size,
    exactly: 1,
    isFresh: true,
    ours: { program, side: 'open', fill: 'fill' },
    rivals: [
      { against: '', atMostMicroseconds },
      {
        against: '150 bytes a stream, memory',
        contestant: { program, side: 'hold bytes', params: { bytes: 150 } },
        by: 'growth',
        atLeast: 1,
      },
    ],
  }
}
