import { describe, expect, test } from 'vitest'
import type { Change } from '../../../adapters/storage/filesystem/changes.ts'
import type { RunFacts } from '../../../adapters/storage/filesystem/run.ts'
import { verifyFiles } from '../../../adapters/storage/filesystem/verify/verify-files.ts'
import { NOW } from '../../../src/storage/conformance/blocks.ts'
import type { Head } from '../../../src/storage/contract.ts'
import {
  type CheckpointFacts,
  checkpointDisk,
  freed,
  headBehind,
  keptBlocks,
  storedBlocks,
} from './lying-disk.ts'
import { openSimulated } from './workload.ts'

const JOURNAL = 'journal-0000000001'

/** Whole frames with right checksums, that say what no engine wrote. */
describe('in a checkpoint', () => {
  test('what is true is sound', async () => {
    const disk = await checkpointDisk((facts) => facts)
    const report = await verifyFiles(disk, { ofEngine: false })
    expect(report).toMatchObject({ problems: [], notes: [], blocks: 6, records: 18, documents: 1, files: 3 })
  })

  test.each<[string, (facts: CheckpointFacts) => CheckpointFacts, RegExp]>([
    [
      'too many blocks of a run',
      run(({ blocks }) => ({ blocks: blocks + 1 })),
      /a run of 7 blocks .* has 6 blocks/,
    ],
    [
      'another metered size',
      run(({ meteredBytes }) => ({ meteredBytes: meteredBytes - 1 })),
      /has 6 blocks with 180144/,
    ],
    ['another last timestamp', run(() => ({ lastTimestamp: NOW })), /the last record is of|ends at/],
    [
      'a last timestamp that only the tail has',
      (facts) =>
        head({ tail: { seqNum: 20, timestamp: NOW + 50 } })(run(() => ({ lastTimestamp: NOW + 50 }))(facts)),
      /a run up to time 1700000000050 ends at 1700000000017/,
    ],
    ['an expiry that is too late', run(() => ({ minExpiry: NOW + 1001 })), /expires before all of them do/],
    [
      'an end of expiry that is too early',
      run(() => ({ maxExpiry: NOW + 1004 })),
      /expires after all of them have/,
    ],
    [
      'a run that begins too late',
      run(() => ({ firstSeqNum: 1 })),
      /a block from 0 to 3 lies between 1 and 18/,
    ],
    [
      'a part of a block that is freed',
      run(() => ({ holes: [{ from: 1, to: 3 }] })),
      /a part of the block from 0 to 3/,
    ],
    ['a hole behind the run', run(() => ({ holes: [{ from: 100, to: 200 }] })), /a hole from 100 to 200/],
    [
      'holes that overlap',
      run(({ blocks, meteredBytes }) => ({
        blocks: blocks - 2,
        meteredBytes: meteredBytes - 60_048,
        holes: [
          { from: 0, to: 6 },
          { from: 3, to: 6 },
        ],
      })),
      /a hole from 3 to 6 lies between 6 and 18/,
    ],
    [
      'too few bytes that are wanted',
      run(() => ({ liveBytes: 5 })),
      /of which 5 bytes are wanted has blocks/,
    ],
    ['a place behind the end', run(() => ({ offset: 40_000_000 })), /does not fit a file/],
    ['a place in front of the first', run(() => ({ offset: 8 })), /does not fit a file/],
    [
      'a place that is another',
      run(({ offset, bytes }) => ({ offset: offset + 1, bytes: bytes - 2 })),
      /index of a run is not whole/,
    ],
    ['an index that there is not', run(() => ({ indexBytes: 0 })), /chunk/],
    [
      'an index of another length',
      run(({ indexBytes }) => ({ indexBytes: indexBytes - 1 })),
      /index of a run/,
    ],
    ['another salt', segment(({ salt }) => ({ salt: (salt + 1) % 2 ** 32 })), /another file than the one/],
    ['another length', segment(({ bytes }) => ({ bytes: bytes + 5 })), /was written with/],
    [
      'a tail in front of the last record',
      head({ tail: { seqNum: 17, timestamp: NOW } }),
      /records up to 18, and the tail is at 17/,
    ],
    ['a tail of an earlier time', head({ tail: { seqNum: 18, timestamp: NOW } }), /and the tail of \d+/],
    [
      'a longer tail of an earlier time',
      head({ tail: { seqNum: 20, timestamp: NOW } }),
      /and the tail of \d+/,
    ],
    ['a tail of a later time', head({ tail: { seqNum: 18, timestamp: NOW + 99 } }), /the tail of \d+99$/],
    ['a trim point behind the tail', head({ trimPoint: 19 }), /trim point 19 is behind the tail 18/],
    ['a number of a log that was not given', (facts) => ({ ...facts, nextLog: 1 }), /a log has a number/],
    ['a version that was not given', (facts) => ({ ...facts, nextVersion: 1 }), /a document has a version/],
    [
      'a version that was given twice',
      (facts) => ({ ...facts, documents: [...facts.documents, { ...facts.documents[0]!, key: 'two' }] }),
      /two documents have one version/,
    ],
    [
      'a document that stands there twice',
      (facts) => ({
        ...facts,
        nextVersion: 3,
        documents: [...facts.documents, { ...facts.documents[0]!, version: 2 }],
      }),
      /it holds 1, 1, 1 segments, documents and logs, and not 1, 2, 1/,
    ],
    [
      'runs that overlap',
      (facts) => ({ ...facts, log: { ...facts.log, runs: [...facts.log.runs, ...facts.log.runs] } }),
      /overlap/,
    ],
    [
      'a log of another number',
      (facts) => ({ ...facts, log: { ...facts.log, number: 3 }, nextLog: 4 }),
      /one of another log/,
    ],
  ])('%s is a problem', async (_, lie, problem) => {
    const { problems } = await verifyFiles(await checkpointDisk(lie), { ofEngine: false })
    expect(problems.map((one) => one.problem)).toContainEqual(expect.stringMatching(problem))
    for (const { file } of problems) expect(['checkpoint-0000000001', 'segment-0000000001']).toContain(file)
  })

  test('blocks that do not follow each other are a problem', async () => {
    const [first, second, third, fourth] = storedBlocks()
    const disk = await checkpointDisk((facts) => facts, [first!, third!, second!, fourth!])
    const { problems } = await verifyFiles(disk, { ofEngine: false })
    expect(problems.map(({ problem }) => problem)).toContainEqual(
      expect.stringMatching(/a block from 3 to 6 lies/),
    )
  })

  test.each<[string, Change, Partial<Head>, RegExp | undefined]>([
    ['freed', freed(0, 6, 2, 60_048), {}, /what is freed from 0 to 6 neither expires nor was trimmed/],
    ['freed whole', freed(0, 18, 6, 180_144), { trimPoint: 17 }, /freed from 0 to 18 neither expires/],
    ['freed beyond its end', freed(0, 19, 6, 180_144), {}, /what is freed up to 19 lies in a run up to 18/],
    ['freed once they were trimmed', freed(0, 6, 2, 60_048), { trimPoint: 6 }, undefined],
  ])('blocks of a run that never expire, %s', async (_, change, changed, problem) => {
    const disk = await checkpointDisk(head(changed), keptBlocks(), [change])
    const { problems } = await verifyFiles(disk, { ofEngine: false })
    if (problem === undefined) expect(problems).toEqual([])
    else
      expect(problems[0]).toMatchObject({ file: JOURNAL, problem: expect.stringMatching(problem), log: 'a' })
  })

  test('a hole of a block that neither expires nor was trimmed is a problem, and one of others is none', async () => {
    const hole = run(({ blocks, meteredBytes }) => {
      return { blocks: blocks - 1, meteredBytes: meteredBytes - 30_024, holes: [{ from: 3, to: 6 }] }
    })
    const problem = 'the block from 3 to 6 is freed, and neither expires nor was trimmed'
    const kept = await verifyFiles(await checkpointDisk(hole, keptBlocks()), { ofEngine: false })
    expect(kept.problems).toMatchObject([{ file: 'segment-0000000001', offset: 32, problem, log: 'a' }])
    const expired = await verifyFiles(await checkpointDisk(hole), { ofEngine: false })
    expect(expired.problems).toEqual([])
    expect(expired.notes).toMatchObject([{ note: expect.stringMatching(/^3 records are not there/) }])
  })

  test('what a run is missing at its end is a note: a merge leaves out what expired there', async () => {
    const longer = (facts: CheckpointFacts) => {
      const tail = { seqNum: 20, timestamp: storedBlocks().at(-1)!.lastTimestamp }
      return head({ tail })(run(() => ({ endSeqNum: 20 }))(facts))
    }
    const { problems, notes } = await verifyFiles(await checkpointDisk(longer), { ofEngine: false })
    expect(problems).toEqual([])
    expect(notes).toMatchObject([{ note: expect.stringMatching(/^2 records are not there/), log: 'a' }])
  })

  test('an opening too refuses a document that stands there twice', async () => {
    const disk = await checkpointDisk((facts) => {
      return { ...facts, documents: [...facts.documents, ...facts.documents] }
    })
    await expect(openSimulated(disk, 1e9)).rejects.toMatchObject({ kind: 'corrupt' })
  })

  test('records that expired in front of others are a note, for nothing tells that they were lost', async () => {
    const disk = await checkpointDisk(head({ tail: { seqNum: 20, timestamp: NOW + 50 } }))
    expect(await verifyFiles(disk, { ofEngine: false })).toMatchObject({
      problems: [],
      notes: [
        { file: 'checkpoint-0000000001', note: expect.stringMatching(/^2 records are not there/), log: 'a' },
      ],
    })
  })

  test('what is damaged in one chunk does not keep the others from being looked at', async () => {
    const disk = await checkpointDisk((facts) => facts)
    const content = disk.contentOf('segment-0000000001')
    content[5_000]! ^= 1
    content[150_000]! ^= 1
    const { problems, blocks } = await verifyFiles(disk, { ofEngine: false })
    expect(problems).toHaveLength(2)
    expect(new Set(problems.map(({ offset }) => offset)).size).toBe(2)
    expect(blocks).toBe(2)
  })
})

function run(lie: (run: RunFacts) => Partial<RunFacts>) {
  return (facts: CheckpointFacts): CheckpointFacts => {
    const runs = facts.log.runs.map((one) => ({ ...one, ...lie(one) }))
    return { ...facts, log: { ...facts.log, runs } }
  }
}

function segment(lie: (segment: CheckpointFacts['segment']) => Partial<CheckpointFacts['segment']>) {
  return (facts: CheckpointFacts): CheckpointFacts => {
    return { ...facts, segment: { ...facts.segment, ...lie(facts.segment) } }
  }
}

function head(lie: Partial<Head>) {
  return (facts: CheckpointFacts): CheckpointFacts => {
    return { ...facts, log: { ...facts.log, head: { ...headBehind(storedBlocks().at(-1)!), ...lie } } }
  }
}
