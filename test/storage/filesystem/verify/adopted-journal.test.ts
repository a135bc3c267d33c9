import { beforeAll, describe, expect, test } from 'vitest'
import { LogWriter } from '../../../../adapters/conformance/log-writer.ts'
import { parseFileName } from '../../../../adapters/storage/filesystem/files/file-header.ts'
import { writeCheckpoint } from '../../../../adapters/storage/filesystem/state/checkpoint.ts'
import { openCheckpoint } from '../../../../adapters/storage/filesystem/state/checkpoint-file.ts'
import type { RunFacts, SegmentFacts } from '../../../../adapters/storage/filesystem/state/segment.ts'
import { Prng } from '../../../../src/runtime/prng.ts'
import { usedBy, verifyDisk } from '../crafted-disk.ts'
import { changedDisk } from '../engine-disk.ts'
import { SimulatedDisk } from '../simulated-disk.ts'
import { collected } from '../state/collected.ts'
import { openSimulated } from '../workload.ts'

const SEGMENT = 'segment-0000000001'
const LARGE_BLOCK_BYTES = 1_000
const LARGE_BLOCKS = 10
const HEADER = 48

describe('an adopted journal', () => {
  let disk: SimulatedDisk
  beforeAll(async () => {
    disk = await adopted()
  })

  test('is sound, and bytes after its end are a note', async () => {
    const appended = withSegment(disk, (content) => Buffer.concat([content, Buffer.alloc(9, 7)]))
    const sound = { problems: [], blocks: LARGE_BLOCKS + 1, records: LARGE_BLOCKS + 2 }
    expect(await verifyDisk(disk)).toMatchObject({ ...sound, notes: [] })
    expect(await verifyDisk(appended)).toMatchObject({
      ...sound,
      notes: [{ file: SEGMENT, offset: disk.contentOf(SEGMENT).length, note: '9 bytes after its end' }],
    })
  })

  test.each<[string, CheckpointChange, RegExp]>([
    ['another journal', { segment: { journal: 7 } }, /^the header belongs to another file$/],
    ['no journal', { segment: { journal: 0 } }, /^not a segment header$/],
    ['another salt', { segment: { salt: 1 } }, /^the file was replaced by another one$/],
    ['more bytes', { segment: { bytes: 1_000_000 } }, /; expected 1000000$/],
    ['fewer bytes', { segment: { bytes: 20_000 } }, /^a run of \d+ bytes exceeds its file of 20000$/],
    ['an index', { run: { indexBytes: 8 } }, /^a run of an adopted journal has an index$/],
    ['a block of more bytes', { run: ({ bytes }) => ({ bytes: bytes + 1 }) }, /^the length of a chunk/],
    [
      'a block of fewer bytes',
      { run: ({ bytes }) => ({ bytes: bytes - 1 }) },
      /^a frame is incomplete or damaged$/,
    ],
    [
      'a block elsewhere',
      { run: ({ offset }) => ({ offset: offset + 8 }) },
      /^a frame is incomplete or damaged/,
    ],
    [
      'a block of another size',
      { run: { meteredBytes: 3 } },
      /^a run should have 1 blocks with 3 metered bytes/,
    ],
    [
      'a block that expires',
      { run: { maxExpiry: 5 } },
      /^a block expires after the maximum expiry of its run$/,
    ],
    ['a block of another log', { log: 5 }, /^a chunk belongs to another log$/],
  ])('is a problem if the checkpoint describes it with %s', async (_, change, problem) => {
    const { problems } = await verifyDisk(await withChangedCheckpoint(disk, change))
    expect(problems).toContainEqual(
      expect.objectContaining({ file: SEGMENT, problem: expect.stringMatching(problem) }),
    )
  })

  test('is read without references if nothing refers to it, after damage too', async () => {
    const name = disk.names.find((file) => parseFileName(file)?.kind === 'checkpoint')!
    const unreferenced = changedDisk(disk, (file, content) => {
      const changed = Buffer.from(content)
      if (file === name) changed[HEADER + 12]! ^= 1
      if (file === SEGMENT) changed[20_000]! ^= 1
      return file === SEGMENT ? Buffer.concat([changed, Buffer.alloc(9, 7)]) : changed
    })
    const { problems, notes, blocks } = await verifyDisk(unreferenced)
    expect(problems.map(({ file }) => file)).toEqual([name, SEGMENT])
    expect(problems[1]!.problem).toBe('a group is damaged and others follow it')
    expect(problems[1]!.offset).toBeGreaterThan(HEADER)
    expect(notes).toContainEqual(expect.objectContaining({ file: SEGMENT, note: '9 incomplete bytes' }))
    // The small one twice, in the journal and in its segment; one of the large ones is damaged.
    expect(blocks).toBe(LARGE_BLOCKS + 1)
  })
})

interface CheckpointChange {
  readonly segment?: Partial<SegmentFacts>
  /** Of the first large block. */
  readonly run?: Partial<RunFacts> | ((run: RunFacts) => Partial<RunFacts>)
  /** Number of the log. */
  readonly log?: number
}

/** A log of large blocks and a small one before them, after a roll. */
async function adopted(): Promise<SimulatedDisk> {
  const disk = new SimulatedDisk(new Prng(1))
  const session = await openSimulated(disk, 30_000, 'power-loss', LARGE_BLOCK_BYTES)
  const writer = await LogWriter.create(session, 'a')
  await writer.append({ count: 2 })
  for (let i = 0; i < LARGE_BLOCKS; i++) await writer.append({ bodyBytes: 3_000 })
  const isRolled = (): boolean => !disk.names.includes('journal-0000000001')
  for (let i = 0; !isRolled(); i++) {
    await session.commit([{ kind: 'put', collection: 'settings', key: 'a', value: i }])
  }
  await session.close()
  return disk
}

/** A copy with a changed checkpoint. */
async function withChangedCheckpoint(disk: SimulatedDisk, change: CheckpointChange): Promise<SimulatedDisk> {
  const copy = changedDisk(disk, (_, content) => content)
  const name = copy.names.find((file) => parseFileName(file)?.kind === 'checkpoint')!
  const journal = parseFileName(name)!.number
  const { state } = await openCheckpoint(copy, journal)
  const logs = (await collected(state.logs.values())).map(({ number, id, head, runs }) => {
    const first = runs.findIndex(({ segment }) => segment === 1)
    const changedRuns = runs.map(({ ...run }, i) => {
      const facts = { ...run, segment: run.home.number }
      const changed = typeof change.run === 'function' ? change.run(facts) : change.run
      return i === first ? { ...facts, ...changed } : facts
    })
    return { number: change.log ?? number, id, head, runs: changedRuns }
  })
  const runs = logs.flatMap((log) => log.runs)
  const segments = [...state.segments.values()].map(({ number, salt, bytes, journal }) => {
    return usedBy({ number, salt, bytes, journal, ...(number === 1 && change.segment) }, runs)
  })
  const { nextVersion, catalog } = state
  const collections = catalog.snapshot()
  const content = { nextLog: 9, nextVersion, segments, collections, logs: [logs] }
  await writeCheckpoint(copy, { journal, ...content }, () => false)
  return copy
}

function withSegment(disk: SimulatedDisk, change: (content: Buffer) => Buffer): SimulatedDisk {
  return changedDisk(disk, (name, content) => (name === SEGMENT ? change(content) : content))
}
