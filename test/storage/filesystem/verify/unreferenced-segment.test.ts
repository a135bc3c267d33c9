import { expect, test } from 'vitest'
import { SegmentWriter } from '../../../../adapters/storage/filesystem/segment/segment-writer.ts'
import type { Head, StoredBlock } from '../../../../src/storage/contract.ts'
import {
  appendOf,
  CREATED,
  checkpointDisk,
  headAfter,
  permanentBlocks,
  storedBlocks,
  verifyDisk,
} from '../crafted-disk.ts'
import { changedDisk } from '../engine-disk.ts'

const SEGMENT = 'segment-0000000001'
const UNREFERENCED = { file: SEGMENT, note: 'unused: nothing refers to it' }

test('reports a problem for each unreferenced chunk of a log that lost its only run', async () => {
  const { problems, notes, records } = await verifyDisk(await diskWithoutRun())
  expect(problems.map(({ file, problem, log }) => [file, problem, log])).toEqual(
    Array.from({ length: 3 }, () => [
      SEGMENT,
      '6 records that neither expire nor were trimmed are here, but nothing refers to them',
      'a',
    ]),
  )
  expect(new Set(problems.map(({ offset }) => offset)).size).toBe(3)
  expect([notes, records]).toEqual([[UNREFERENCED], 0])
})

test('reports no problem for trimmed records', async () => {
  expect(await verifyDisk(await diskWithoutRun({ trimPoint: 18 }))).toMatchObject({
    problems: [],
    notes: [UNREFERENCED],
  })
  const { problems } = await verifyDisk(await diskWithoutRun({ trimPoint: 11 }))
  expect(problems.map(({ problem }) => Number.parseInt(problem, 10))).toEqual([1, 6])
})

test('reports no problem for records that may have expired', async () => {
  const report = await verifyDisk(await diskWithoutRun({}, storedBlocks()))
  expect(report).toMatchObject({ problems: [], notes: [UNREFERENCED] })
})

test('reports no problem for records that exist elsewhere, as after a crash during a roll', async () => {
  const blocks = permanentBlocks()
  const appends = blocks.map((block) => appendOf(block))
  const rolling = await checkpointDisk((facts) => facts, blocks, [CREATED, ...appends])
  const before = changedDisk(rolling, (name, content) =>
    name.startsWith('checkpoint') ? undefined : content,
  )
  expect(await verifyDisk(before)).toMatchObject({ problems: [], notes: [UNREFERENCED], records: 18 })
})

test('reports no problem for records of a deleted log', async () => {
  const disk = await checkpointDisk((facts) => facts, permanentBlocks(), [{ kind: 'delete-log', log: 1 }])
  expect(await verifyDisk(disk)).toMatchObject({ problems: [], notes: [UNREFERENCED], logs: 0 })
})

test('reports no problem for incomplete chunks, truncated at any byte', async () => {
  const disk = await diskWithoutRun()
  const { length } = disk.contentOf(SEGMENT)
  const counts = [20, 40, 70_000, 130_000, length - 1].map(async (offset) => {
    const damaged = changedDisk(disk, (name, content) => {
      if (name !== SEGMENT) return content
      const changed = Buffer.from(content)
      changed[offset]! ^= 4
      return changed
    })
    return (await verifyDisk(damaged)).problemCount
  })
  expect(await Promise.all(counts)).toEqual([0, 0, 1, 2, 3])
})

test('checks all runs of a segment', async () => {
  const disk = await diskWithoutRun()
  const writer = await SegmentWriter.create(disk, 2)
  for (const log of [7, 1]) {
    writer.beginRun(log)
    for (const block of permanentBlocks()) await writer.add(block)
    await writer.endRun()
  }
  await writer.finish()
  const { problems } = await verifyDisk(disk)
  expect(problems.map(({ file }) => file)).toEqual([
    ...Array.from({ length: 3 }, () => SEGMENT),
    ...Array.from({ length: 3 }, () => 'segment-0000000002'),
  ])
})

test('reports no problem for a segment that cannot be opened', async () => {
  const disk = await diskWithoutRun()
  const open = disk.open.bind(disk)
  disk.open = async (name, mode) => {
    if (name === SEGMENT) throw Object.assign(new Error('EISDIR'), { code: 'EISDIR' })
    return open(name, mode)
  }
  expect(await verifyDisk(disk)).toMatchObject({ problems: [], notes: [UNREFERENCED] })
})

/** A checkpoint without the run that holds all records of the log. */
function diskWithoutRun(changed: Partial<Head> = {}, blocks: readonly StoredBlock[] = permanentBlocks()) {
  return checkpointDisk((facts) => {
    const head = headAfter(blocks.at(-1)!, changed)
    return { ...facts, log: { ...facts.log, head, runs: [] } }
  }, blocks)
}
