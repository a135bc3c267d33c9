import type { Contestant, Measurement } from '../harness/measurement.ts'

const program = 'scale'

export const scaleRows: Readonly<Record<string, Measurement>> = {
  opening: {
    work: 'open {size} streams with 3 records of 1 KiB each, filesystem',
    each: 'an opening',
    size: 100_000,
    exactly: 1,
    isFresh: true,
    ours: { program, side: 'open', fill: 'fill streams' },
    rivals: [
      { against: 'itself at {baseline}, time', contestant: 'baseline', atLeast: 3 },
      { against: 'itself at {baseline}, memory', contestant: 'baseline', by: 'growth', atLeast: 2 },
    ],
  },
  'opening-million': {
    work: 'open {size} streams with a record each, filesystem',
    each: 'an opening',
    size: 1_000_000,
    exactly: 1,
    isFresh: true,
    ours: { program, side: 'open', fill: 'fill small' },
    rivals: [
      { against: '', atMostMicroseconds: 1_000_000 },
      {
        against: '150 bytes a stream, memory',
        contestant: { program, side: 'hold bytes', params: { bytes: 150 } },
        by: 'growth',
        atLeast: 1,
      },
    ],
  },
  'listing-disk': {
    work: 'list 1,000 of {size} streams by prefix, filesystem',
    each: 'a list',
    size: 1_000_000,
    most: 500,
    ours: { program, side: 'list streams', fill: 'fill small' },
    rivals: [{ against: '', atMostMicroseconds: 5_000 }],
  },
  'random-streams-disk': randomStreams(100_000, 0.7),
  'random-million-disk': randomStreams(1_000_000, 0.6),
  'growing-stream': growing(false, 10_000_000),
  'growing-stream-disk': growing(true, 1_000_000),
  'growing-engine': {
    work: 'append of 1 KiB, memory: an engine with 100,000 streams',
    each: 'an append',
    most: 50_000,
    ours: { program, side: 'many streams', params: { streams: 100_000 } },
    rivals: [
      {
        against: 'an engine with 10 streams',
        contestant: { program, side: 'many streams', params: { streams: 10 } },
        atLeast: 0.8,
      },
    ],
  },
  'fold-opening': foldOpening(false),
  'fold-opening-disk': foldOpening(true),
  creation: {
    work: 'creation of {size} streams by their first append, memory',
    each: 'a stream',
    size: 100_000,
    exactly: 'size',
    ours: { program, side: 'create streams' },
    rivals: [{ against: '', atMostMicroseconds: 16.7 }],
  },
  'cold-start': {
    work: 'import, open, first append, memory, in a new process',
    each: 'a start',
    exactly: 1,
    isFresh: true,
    rounds: 3,
    ours: { program: 'cold-start', side: 'headwater' },
    rivals: [
      {
        against: "`import('rxjs')`",
        contestant: { program: 'cold-start', side: 'rxjs' },
        atLeast: 1,
      },
    ],
  },
}

function foldOpening(onDisk: boolean): Measurement {
  const params = { onDisk }
  return {
    work: `${onDisk ? 'filesystem' : 'in memory'}: open a fold of {size} × 256 B with a snapshot 1,000 records old`,
    each: 'an opening',
    size: 1_000_000,
    ours: { program: 'folds', side: 'opening', params },
    rivals: [
      {
        against: 'reading the last 1,000 records',
        contestant: { program: 'folds', side: 'reading', params },
        atLeast: 0.5,
      },
    ],
  }
}

function randomStreams(size: number, atLeast: number): Measurement {
  const fill = 'fill small'
  return {
    work: 'append of 1 KiB, filesystem: visiting {size} streams without a pattern',
    each: 'an append',
    size,
    most: 5_000,
    ours: { program, side: 'filled streams', fill },
    rivals: [
      {
        against: '10 of the streams',
        contestant: { program, side: 'filled streams', params: { streams: 10 }, fill },
        atLeast,
      },
    ],
  }
}

function growing(onDisk: boolean, records: number): Measurement {
  const contestant = (before: number): Contestant => ({
    program,
    side: 'grown',
    params: { onDisk, records: before },
  })
  return {
    work: `append of 1 KiB, ${onDisk ? 'filesystem' : 'memory'}: a stream of ${records.toLocaleString('en')} records`,
    each: 'an append',
    most: 20_000,
    ours: contestant(records),
    rivals: [{ against: 'a stream of 1,000 records', contestant: contestant(1_000), atLeast: 0.8 }],
  }
}
