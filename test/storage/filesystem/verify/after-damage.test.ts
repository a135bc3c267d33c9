import { describe, expect, test } from 'vitest'
import { block } from '../../../../adapters/conformance/log-writer.ts'
import { FRAME_HEADER_BYTES } from '../../../../adapters/storage/filesystem/files/frame.ts'
import type { Change } from '../../../../adapters/storage/filesystem/state/change.ts'
import type { StoredBlock } from '../../../../src/storage/contract.ts'
import { appendOf, CREATED, checkpointDisk, journalDisk, verifyDisk } from '../crafted-disk.ts'
import { changedDisk } from '../engine-disk.ts'
import type { SimulatedDisk } from '../simulated-disk.ts'
import { openSimulated } from '../workload.ts'

const JOURNAL = 'journal-0000000001'
const CHECKPOINT = 'checkpoint-0000000001'
const SEGMENT = 'segment-0000000001'
const HEADER = 48
const GROUP_HEADER = 24

describe('after damage in a journal', () => {
  test('reports any flipped bit, up to the last group', async () => {
    const disk = await journalDisk(appends(4))
    const groups = groupsOf(disk)
    expect(disk.contentOf(JOURNAL).subarray(0, groups.at(-1)).length % 8).toBe(0)
    for (let offset = 0; offset < groups.at(-1)!; offset++) {
      const { problems } = await verifyDisk(flipped(disk, JOURNAL, offset))
      const group = groups.findLast((start) => start <= offset) ?? 0
      const places = problems.map((problem) => [problem.file, problem.offset])
      // Damage to the header is reported with a more precise offset.
      if (offset >= HEADER) expect(places, `${offset}`).toEqual([[JOURNAL, group]])
      else expect(places).toEqual([[JOURNAL, expect.any(Number)]])
    }
  })

  test('checks the padding of groups', async () => {
    const disk = await journalDisk(appends(4))
    const content = disk.contentOf(JOURNAL)
    const padded = groupsOf(disk).findIndex(
      (start) => (content.readUInt32LE(start + 4) + GROUP_HEADER) % 8 !== 0,
    )
    const end = groupsOf(disk)[padded + 1]!
    const { problems, records } = await verifyDisk(flipped(disk, JOURNAL, end - 1))
    expect(problems).toMatchObject([{ problem: 'the padding of a group is not zero' }])
    expect(records).toBe(4)
  })

  test('checks the groups after two damaged ones', async () => {
    const disk = await journalDisk([...appends(5), appendOf({ ...blockAt(5), meteredBytes: 7 })])
    const [, , third, fourth, , , last] = groupsOf(disk)
    const damaged = flipped(flipped(disk, JOURNAL, third! + GROUP_HEADER + 20), JOURNAL, fourth!)
    const { problems } = await verifyDisk(damaged)
    expect(problems.map(({ offset }) => offset)).toEqual([third, last! + GROUP_HEADER])
    expect(problems[0]!.problem).toBe('a group is damaged and others follow it')
    await expect(openSimulated(damaged, 1e9)).rejects.toMatchObject({ kind: 'corrupt' })
  })

  test('reports no further problems for changes that depend on an invalid one', async () => {
    const toMissingLog = appends(3).map((change) => ({ ...change, log: 9 }) as Change)
    const { problems, notes } = await verifyDisk(await journalDisk([CREATED, ...toMissingLog.slice(1)]))
    expect(problems).toMatchObject([{ problem: 'log 9 does not exist' }])
    expect(notes).toMatchObject([{ note: 'some data is lost: what depends on it was not checked' }])
  })

  test('continues with the next journal after a missing one', async () => {
    const disk = await journalDisk(
      [appendOf({ ...blockAt(0), meteredBytes: 7 })],
      await journalDisk(appends(1)),
      3,
    )
    const { problems } = await verifyDisk(disk)
    expect(problems).toMatchObject([
      { file: 'journal-0000000002', offset: 0, problem: 'the file is missing' },
      { file: 'journal-0000000003', problem: 'a block has 10 metered bytes; expected 7' },
    ])
  })
})

describe('after damage in a checkpoint', () => {
  test('uses the other frames', async () => {
    const disk = await checkpointDisk((facts) => facts)
    const [segments, documents] = framesOf(disk)
    const withoutSegments = await verifyDisk(flipped(disk, CHECKPOINT, segments! + 9))
    expect(withoutSegments).toMatchObject({
      documents: 1,
      problems: [{ file: CHECKPOINT, offset: segments }],
    })
    expect(withoutSegments.problems).toHaveLength(1)
    const withoutDocuments = await verifyDisk(flipped(disk, CHECKPOINT, documents! + 9))
    expect(withoutDocuments).toMatchObject({
      documents: 0,
      logs: 1,
      problems: [{ offset: documents }],
      blocks: 6,
    })
    expect(withoutDocuments.problems).toHaveLength(1)
  })

  test('reads segments without references', async () => {
    const disk = flipped(await checkpointDisk((facts) => facts), CHECKPOINT, 0)
    const { problems, blocks, records } = await verifyDisk(disk)
    expect(problems).toMatchObject([{ file: CHECKPOINT }])
    expect([problems.length, blocks, records]).toEqual([1, 6, 18])
    const both = await verifyDisk(flipped(disk, SEGMENT, 70_000))
    expect(both.problems.map(({ file }) => file)).toEqual([CHECKPOINT, SEGMENT])
  })

  test('notes a missing segment that may be unused', async () => {
    const disk = await checkpointDisk((facts) => facts)
    const damaged = flipped(disk, CHECKPOINT, framesOf(disk)[1]! + 9)
    await damaged.unlink(SEGMENT)
    const { problems, notes } = await verifyDisk(damaged)
    expect(problems).toMatchObject([{ file: CHECKPOINT }])
    expect(notes).toContainEqual({ file: SEGMENT, note: 'the file is missing, but possibly unused' })
  })

  test('reports data after the last frame', async () => {
    const disk = await checkpointDisk((facts) => facts)
    const longer = changedDisk(disk, (name, content) =>
      name === CHECKPOINT ? Buffer.concat([content, Buffer.alloc(1)]) : content,
    )
    const { problems } = await verifyDisk(longer)
    expect(problems).toMatchObject([
      { offset: disk.contentOf(CHECKPOINT).length, problem: 'unexpected data after the last frame' },
    ])
  })
})

test('finds chunks one after the other if their index is damaged', async () => {
  const disk = await checkpointDisk((facts) => facts)
  const { length } = disk.contentOf(SEGMENT)
  const { problems, blocks } = await verifyDisk(flipped(disk, SEGMENT, length - 1))
  expect(problems).toMatchObject([{ file: SEGMENT, problem: 'the index of a run is damaged', log: 'a' }])
  expect([problems.length, blocks]).toEqual([1, 6])
})

function blockAt(seqNum: number): StoredBlock {
  return block({ firstSeqNum: seqNum })
}

/** A log and so many appends to it, of different lengths. */
function appends(count: number): Change[] {
  return [
    CREATED,
    ...Array.from({ length: count }, (_, i) => appendOf(blockAt(i), { fencingToken: 'x'.repeat(i) })),
  ]
}

function flipped(disk: SimulatedDisk, file: string, offset: number): SimulatedDisk {
  return changedDisk(disk, (name, content) => {
    if (name !== file) return content
    const changed = Buffer.from(content)
    changed[offset]! ^= 4
    return changed
  })
}

/** Where the groups of the journal begin. */
function groupsOf(disk: SimulatedDisk): number[] {
  const content = disk.contentOf(JOURNAL)
  const offsets: number[] = []
  for (let offset = HEADER; offset < content.length; ) {
    offsets.push(offset)
    offset += Math.ceil((GROUP_HEADER + content.readUInt32LE(offset + 4)) / 8) * 8
  }
  return offsets
}

/** Where the frames of the checkpoint begin. */
function framesOf(disk: SimulatedDisk): number[] {
  const content = disk.contentOf(CHECKPOINT)
  const offsets: number[] = []
  for (let offset = HEADER; offset < content.length; ) {
    offsets.push(offset)
    offset += FRAME_HEADER_BYTES + content.readUInt32LE(offset + 4)
  }
  return offsets
}
