import type { Contestant, Measurement } from '../harness/measurement.ts'

const program = 'scale'

const bareList: Contestant = { program, side: 'bare list', fill: 'fill small' }

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
    rivals: [
      { against: '', atMostMicroseconds: 5_000 },
      { against: 'bare reads of as many documents, with a checksum and `JSON.parse`', contestant: bareList },
    ],
  },
  'listing-disk-first': {
    work: 'the first list after opening, of 1,000 of {size} streams by prefix, filesystem',
    each: 'a list',
    size: 1_000_000,
    exactly: 1,
    isFresh: true,
    rounds: 3,
    ours: { program, side: 'list streams', fill: 'fill small' },
    rivals: [
      { against: '', atMostMicroseconds: 5_000 },
      { against: 'bare reads of as many documents, with a checksum and `JSON.parse`', contestant: bareList },
    ],
  },
  'random-streams-disk': randomStreams(100_000, 0.7),
  'random-million-disk': randomStreams(1_000_000, 0.6),
  'growing-stream': growing(false, 10_000_000),
  'growing-stream-disk': growing(true, 1_000_000),
  'growing-engine': growingEngine(100_000, 0.7),
  'growing-engine-million': growingEngine(1_000_000, 0.6),
  'bare-copies': {
    work: 'a copy of 1 KiB, appended to one of 100,000 arrays in a bare `Map`',
    each: 'a copy',
    most: 50_000,
    ours: bareCopies(100_000),
    rivals: [{ against: 'the same with 10 arrays', contestant: bareCopies(10) }],
  },
  'bare-slab': {
    work: 'a copy of 1 KiB into one buffer, and numbers of 100,000 names in typed arrays',
    each: 'a copy',
    most: 50_000,
    ours: bareSlab(100_000),
    rivals: [{ against: 'the same with 10 names', contestant: bareSlab(10) }],
  },
  'bulk-delete': bulk('delete', 'a basin with {size} streams is deleted'),
  'bulk-trim': bulk('trim', '{size} streams are trimmed'),
  'bulk-expire': bulk('expire', 'the records of {size} streams expire'),
  'idle-streams': {
    work: 'memory of {size} streams with a record of 8 bytes each',
    each: 'a stream',
    size: 1_000_000,
    exactly: 'size',
    isFresh: true,
    ours: { program, side: 'idle streams' },
    rivals: [
      {
        against: '400 bytes each, memory',
        contestant: { program, side: 'bytes', params: { bytesEach: 400 } },
        by: 'growth',
        atLeast: 1,
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

function growingEngine(streams: number, atLeast: number): Measurement {
  const contestant = (count: number): Contestant => ({
    program,
    side: 'many streams',
    params: { streams: count },
  })
  return {
    work: `append of 1 KiB, memory: an engine with ${streams.toLocaleString('en')} streams`,
    each: 'an append',
    most: 50_000,
    ours: contestant(streams),
    rivals: [
      { against: 'an engine with 10 streams', contestant: contestant(10), atLeast },
      { against: 'a copy into as many arrays in a bare `Map`', contestant: bareCopies(streams) },
      { against: 'a copy into one buffer, and numbers of as many names', contestant: bareSlab(streams) },
    ],
  }
}

function bareCopies(streams: number): Contestant {
  return { program, side: 'bare copies', params: { streams } }
}

function bareSlab(streams: number): Contestant {
  return { program, side: 'bare slab', params: { streams } }
}

function bulk(change: string, happening: string): Measurement {
  return {
    work: `the longest time that an append waits while ${happening} at once, memory`,
    each: 'the longest',
    size: 100_000,
    exactly: 1,
    isFresh: true,
    ours: { program, side: 'bulk', params: { change } },
    rivals: [{ against: '', atMostMicroseconds: 50_000 }],
  }
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
    // The first thousands, which opening and compilation slow down, are the warm-up.
    exactly: 15_000,
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
