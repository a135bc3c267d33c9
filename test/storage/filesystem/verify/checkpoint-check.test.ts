import { describe, expect, test } from 'vitest'
import { NOW } from '../../../../adapters/conformance/log-writer.ts'
import type { Change } from '../../../../adapters/storage/filesystem/state/change.ts'
import type { RunFacts, SegmentUse } from '../../../../adapters/storage/filesystem/state/segment.ts'
import { verifyFiles } from '../../../../adapters/storage/filesystem/verify/verify-files.ts'
import type { Head } from '../../../../src/storage/contract.ts'
import {
  type CheckpointFacts,
  checkpointDisk,
  freed,
  headAfter,
  permanentBlocks,
  storedBlocks,
} from '../crafted-disk.ts'
import { openSimulated } from '../workload.ts'

const JOURNAL = 'journal-0000000001'

/** Complete frames with valid checksums whose content no engine wrote. */
describe('verifying a checkpoint', () => {
  test('reports nothing for a sound checkpoint', async () => {
    const disk = await checkpointDisk((facts) => facts)
    const report = await verifyFiles(disk, { ofEngine: false })
    expect(report).toMatchObject({ problems: [], notes: [], blocks: 6, records: 18, documents: 1, files: 3 })
  })

  test.each<[string, (facts: CheckpointFacts) => CheckpointFacts, RegExp]>([
    [
      'a run with too many blocks',
      run(({ blocks }) => ({ blocks: blocks + 1 })),
      /a run should have 7 blocks .* but has 6 blocks/,
    ],
    [
      'a wrong metered size',
      run(({ meteredBytes }) => ({ meteredBytes: meteredBytes - 1 })),
      /has 6 blocks with 180144/,
    ],
    ['a wrong last timestamp', run(() => ({ lastTimestamp: NOW })), /the last record has|ends at/],
    [
      'a last timestamp that only the tail has',
      (facts) =>
        head({ tail: { seqNum: 20, timestamp: NOW + 50 } })(run(() => ({ lastTimestamp: NOW + 50 }))(facts)),
      /a run should end at time 1700000000050 but ends at 1700000000017/,
    ],
    [
      'a minimum expiry that is too late',
      run(() => ({ minExpiry: NOW + 1001 })),
      /expires before the minimum expiry/,
    ],
    [
      'a maximum expiry that is too early',
      run(() => ({ maxExpiry: NOW + 1004 })),
      /expires after the maximum expiry/,
    ],
    [
      'a run that begins too late',
      run(() => ({ firstSeqNum: 1 })),
      /the block from 0 to 3 is outside 1 to 18/,
    ],
    [
      'a partly freed block',
      run(() => ({ holes: [{ from: 1, to: 3 }] })),
      /the block from 0 to 3 is only partly freed/,
    ],
    [
      'a hole after the end of the run',
      run(() => ({ holes: [{ from: 100, to: 200 }] })),
      /the hole from 100 to 200/,
    ],
    [
      'overlapping holes',
      run(({ blocks, meteredBytes }) => ({
        blocks: blocks - 2,
        meteredBytes: meteredBytes - 60_048,
        holes: [
          { from: 0, to: 6 },
          { from: 3, to: 6 },
        ],
      })),
      /the hole from 3 to 6 is outside 6 to 18/,
    ],
    ['too few bytes in use', run(() => ({ liveBytes: 5 })), /counts 5 bytes in use, but its blocks/],
    ['an offset beyond the end of the file', run(() => ({ offset: 40_000_000 })), /exceeds its file/],
    ['an offset within the file header', run(() => ({ offset: 8 })), /exceeds its file/],
    [
      'a wrong offset',
      run(({ offset, bytes }) => ({ offset: offset + 1, bytes: bytes - 2 })),
      /index of a run is damaged/,
    ],
    ['a missing index', run(() => ({ indexBytes: 0 })), /chunk/],
    [
      'an index of a wrong length',
      run(({ indexBytes }) => ({ indexBytes: indexBytes - 1 })),
      /index of a run/,
    ],
    ['a wrong salt', segment(({ salt }) => ({ salt: (salt + 1) % 2 ** 32 })), /replaced by another one/],
    [
      'a wrong use of a segment',
      use(({ runs }) => ({ runs: runs + 1 })),
      /recorded as 2 runs .* but it is 1 runs/,
    ],
    ['a wrong file length', segment(({ bytes }) => ({ bytes: bytes + 5 })), /it has \d+ bytes; expected/],
    [
      'a tail before the last record',
      head({ tail: { seqNum: 17, timestamp: NOW } }),
      /records reach 18, but the tail is 17/,
    ],
    [
      'a tail with an earlier timestamp',
      head({ tail: { seqNum: 18, timestamp: NOW } }),
      /but the tail has \d+/,
    ],
    [
      'a tail beyond the last record with an earlier timestamp',
      head({ tail: { seqNum: 20, timestamp: NOW } }),
      /but the tail has \d+/,
    ],
    [
      'a tail with a later timestamp',
      head({ tail: { seqNum: 18, timestamp: NOW + 99 } }),
      /the tail has \d+99$/,
    ],
    ['a trim point beyond the tail', head({ trimPoint: 19 }), /trim point 19 is beyond the tail 18/],
    ['a log number beyond the counter', (facts) => ({ ...facts, nextLog: 1 }), /a log has a number/],
    ['a version beyond the counter', (facts) => ({ ...facts, nextVersion: 1 }), /a document has a version/],
    [
      'a version used twice',
      (facts) => ({ ...facts, documents: [...facts.documents, { ...facts.documents[0]!, key: 'two' }] }),
      /two documents have the same version/,
    ],
    [
      'a duplicate document',
      (facts) => ({
        ...facts,
        nextVersion: 3,
        documents: [...facts.documents, ...facts.documents],
      }),
      /documents are not in order/,
    ],
    [
      'overlapping runs',
      (facts) => ({ ...facts, log: { ...facts.log, runs: [...facts.log.runs, ...facts.log.runs] } }),
      /overlap/,
    ],
    [
      'a wrong log number',
      (facts) => ({ ...facts, log: { ...facts.log, number: 3 }, nextLog: 4 }),
      /belongs to another log/,
    ],
  ])('reports %s', async (_, change, problem) => {
    const { problems } = await verifyFiles(await checkpointDisk(change), { ofEngine: false })
    expect(problems.map((report) => report.problem)).toContainEqual(expect.stringMatching(problem))
    for (const { file } of problems) expect(['checkpoint-0000000001', 'segment-0000000001']).toContain(file)
  })

  test('reports blocks out of order', async () => {
    const [first, second, third, fourth] = storedBlocks()
    const disk = await checkpointDisk((facts) => facts, [first!, third!, second!, fourth!])
    const { problems } = await verifyFiles(disk, { ofEngine: false })
    expect(problems.map(({ problem }) => problem)).toContainEqual(
      expect.stringMatching(/the block from 3 to 6 is outside/),
    )
  })

  test.each<[string, Change, Partial<Head>, RegExp | undefined]>([
    [
      'freed while in use',
      freed(0, 6, 2, 60_048),
      {},
      /the freed range from 0 to 6 neither expires nor was trimmed/,
    ],
    [
      'freed completely while in use',
      freed(0, 18, 6, 180_144),
      { trimPoint: 17 },
      /freed range from 0 to 18 neither expires/,
    ],
    [
      'freed beyond the end of the run',
      freed(0, 19, 6, 180_144),
      {},
      /the freed range ends at 19, after the end of its run at 18/,
    ],
    ['freed after a trim', freed(0, 6, 2, 60_048), { trimPoint: 6 }, undefined],
  ])('checks blocks of a run that never expire, %s', async (_, change, changed, problem) => {
    const disk = await checkpointDisk(head(changed), permanentBlocks(), [change])
    const { problems } = await verifyFiles(disk, { ofEngine: false })
    if (problem === undefined) expect(problems).toEqual([])
    else
      expect(problems[0]).toMatchObject({ file: JOURNAL, problem: expect.stringMatching(problem), log: 'a' })
  })

  test('reports a hole unless its block expires or was trimmed', async () => {
    const hole = run(({ blocks, meteredBytes }) => {
      return { blocks: blocks - 1, meteredBytes: meteredBytes - 30_024, holes: [{ from: 3, to: 6 }] }
    })
    const problem = 'the block from 3 to 6 is freed but neither expires nor was trimmed'
    const kept = await verifyFiles(await checkpointDisk(hole, permanentBlocks()), { ofEngine: false })
    expect(kept.problems).toMatchObject([{ file: 'segment-0000000001', offset: 48, problem, log: 'a' }])
    const expired = await verifyFiles(await checkpointDisk(hole), { ofEngine: false })
    expect(expired.problems).toEqual([])
    expect(expired.notes).toMatchObject([{ note: expect.stringMatching(/^3 records are missing/) }])
  })

  test('notes records missing at the end of a run, which a compaction omits if they expired', async () => {
    const longer = (facts: CheckpointFacts) => {
      const tail = { seqNum: 20, timestamp: storedBlocks().at(-1)!.lastTimestamp }
      return head({ tail })(run(() => ({ endSeqNum: 20 }))(facts))
    }
    const { problems, notes } = await verifyFiles(await checkpointDisk(longer), { ofEngine: false })
    expect(problems).toEqual([])
    expect(notes).toMatchObject([{ note: expect.stringMatching(/^2 records are missing/), log: 'a' }])
  })

  test('a read rejects a duplicate document, too', async () => {
    const disk = await checkpointDisk((facts) => {
      return { ...facts, documents: [...facts.documents, ...facts.documents] }
    })
    const session = await openSimulated(disk, 1e9)
    await expect(session.get('settings', 'one')).rejects.toMatchObject({ kind: 'corrupt' })
    await session.close()
  })

  test('notes missing records after the last block, which may have expired', async () => {
    const disk = await checkpointDisk(head({ tail: { seqNum: 20, timestamp: NOW + 50 } }))
    expect(await verifyFiles(disk, { ofEngine: false })).toMatchObject({
      problems: [],
      notes: [
        { file: 'checkpoint-0000000001', note: expect.stringMatching(/^2 records are missing/), log: 'a' },
      ],
    })
  })

  test('continues with the next chunk after a damaged one', async () => {
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

function run(change: (run: RunFacts) => Partial<RunFacts>) {
  return (facts: CheckpointFacts): CheckpointFacts => {
    const runs = facts.log.runs.map((run) => ({ ...run, ...change(run) }))
    return { ...facts, log: { ...facts.log, runs } }
  }
}

function segment(change: (segment: CheckpointFacts['segment']) => Partial<CheckpointFacts['segment']>) {
  return (facts: CheckpointFacts): CheckpointFacts => {
    return { ...facts, segment: { ...facts.segment, ...change(facts.segment) } }
  }
}

function use(change: (segment: SegmentUse) => Partial<SegmentUse>) {
  return (facts: CheckpointFacts): CheckpointFacts => ({ ...facts, use: change })
}

function head(change: Partial<Head>) {
  return (facts: CheckpointFacts): CheckpointFacts => {
    return { ...facts, log: { ...facts.log, head: { ...headAfter(storedBlocks().at(-1)!), ...change } } }
  }
}
