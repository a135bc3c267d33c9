import type { Measurement } from '../harness/measurement.ts'

const program = 'scale'

export const scaleRows: Readonly<Record<string, Measurement>> = {
  opening: opening(100_000, 500_000, 2_097),
  'opening-million': opening(1_000_000, 5_000_000, 1_073),
}

function opening(size: number, atMostMicroseconds: number, bytes: number): Measurement {
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
        against: `${bytes} bytes a stream, memory`,
        contestant: { program, side: 'hold bytes', params: { bytes } },
        by: 'growth',
        atLeast: 1,
      },
    ],
  }
}
