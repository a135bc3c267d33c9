import { afterEach, beforeEach, describe, expect, it, test, vi } from 'vitest'
import { LogWriter, NOW, recordsOfBlocks, WHOLE_LOG } from '../../../adapters/conformance/log-writer.ts'
import { checkRead } from '../../../adapters/conformance/model.ts'
import type { Files } from '../../../adapters/storage/filesystem/files/files.ts'
import { verifyFiles } from '../../../adapters/storage/filesystem/verify/verify-files.ts'
import { Prng } from '../../../src/runtime/prng.ts'
import type { ReadRange, StorageSession, StoredBlock } from '../../../src/storage/contract.ts'
import { recordSpans } from '../../../src/storage/record-spans.ts'
import { SimulatedDisk } from './simulated-disk.ts'
import { openSimulated } from './workload.ts'

const COUNT = 1_000
const BODY_BYTES = 256
const NEVER = Number.POSITIVE_INFINITY
const CORRUPT = { name: 'StorageFailure', kind: 'corrupt' }

interface Location {
  readonly file: string
  readonly rollBytes: number
  readonly largeBlockBytes: number
}

const LOCATIONS: readonly (readonly [string, Location])[] = [
  ['a journal', { file: 'journal', rollBytes: 1e9, largeBlockBytes: NEVER }],
  ['a segment', { file: 'segment', rollBytes: 600_000, largeBlockBytes: NEVER }],
  ['an adopted journal', { file: 'segment', rollBytes: 600_000, largeBlockBytes: 1_000 }],
]

describe.each(LOCATIONS)('a large block in %s', (_, { file, rollBytes, largeBlockBytes }) => {
  let disk: SimulatedDisk
  let session: StorageSession
  let writer: LogWriter
  /** Lengths of the reads. */
  let reads: number[]

  beforeEach(async () => {
    disk = new SimulatedDisk(new Prng(1))
    reads = []
    const written = await openSimulated(disk, rollBytes, 'power-loss', largeBlockBytes)
    writer = await LogWriter.create(written, 'a')
    // The third one starts the roll of the others.
    for (let i = 0; i < 3; i++) await writer.append({ count: COUNT, bodyBytes: BODY_BYTES })
    await vi.waitFor(() => expect(disk.names.some((name) => name.startsWith(file))).toBe(true))
    await written.close()
    session = await openSimulated(counted(disk, reads), 1e9, 'power-loss', largeBlockBytes)
    reads.length = 0
  })

  afterEach(() => session.close())

  function rangeFrom(seqNum: number): ReadRange {
    return { ...WHOLE_LOG, from: { seqNum }, recordsMax: 1 }
  }

  it('is read by its page table and one page at first, and then by one page', async () => {
    const seqNumsOf = async (range: ReadRange) =>
      recordsOfBlocks(await session.read('a', range)).map((record) => record.seqNum)
    expect(await seqNumsOf(rangeFrom(500))).toEqual([500])
    const first = reads.splice(0)
    expect(await seqNumsOf(rangeFrom(520))).toEqual([520])
    expect(reads.length).toBe(1)
    expect(Math.max(...first, ...reads)).toBeLessThan(10_000)
  })

  it.each([0, 200, 500])('is returned without anything else in its memory from %i on', async (seqNum) => {
    for (const range of [rangeFrom(seqNum), { ...WHOLE_LOG, from: { seqNum } }]) {
      const blocks = await session.read('a', range)
      for (const buffer of new Set(blocks.map(({ data }) => data.buffer))) {
        const contents = new Uint8Array(buffer.slice(0))
        for (const { data } of blocks) {
          if (data.buffer === buffer) contents.fill(0, data.byteOffset, data.byteOffset + data.length)
        }
        expect(contents.every((byte) => byte === 0)).toBe(true)
      }
    }
  })

  it('is read from any sequence number or time, as far as a limit admits', async () => {
    for (const seqNum of [0, 1, 31, 32, 500, 999, 1_000, 1_001, 1_999]) {
      for (const from of [{ seqNum }, { timestamp: NOW + seqNum }]) {
        for (const limits of [{}, { bytesMax: 1 }, { bytesMax: 5_000 }, { endSeqNum: 1_400 }]) {
          const range = { ...WHOLE_LOG, from, ...limits }
          checkRead(writer.written, range, await session.read('a', range))
          checkRead(
            writer.written,
            { ...range, unsplit: true },
            await session.read('a', { ...range, unsplit: true }),
          )
        }
        for (const recordsMax of [1, 2, 40, 1_500]) {
          const found = recordsOfBlocks(await session.read('a', { ...WHOLE_LOG, from, recordsMax }))
          const first = 'seqNum' in from ? seqNum : firstSeqNumAt(writer, NOW + seqNum)
          expect(found.find((record) => record.seqNum === first)).toBeDefined()
          expect(found.filter((record) => record.seqNum >= first).length).toBeGreaterThanOrEqual(
            Math.min(recordsMax, 3 * COUNT - first),
          )
        }
      }
    }
  })

  it('can be read in part if another page is damaged, which is reported when it is read', async () => {
    corruptRecord(disk, writer.written[0]!.block, 700)
    expect(recordsOfBlocks(await session.read('a', rangeFrom(100))).map(({ seqNum }) => seqNum)).toEqual([
      100,
    ])
    await expect(session.read('a', rangeFrom(700))).rejects.toMatchObject(CORRUPT)
    await expect(session.read('a', WHOLE_LOG)).rejects.toMatchObject(CORRUPT)
    await session.close()
    const { problems } = await verifyFiles(disk, { ofEngine: false })
    expect(problems.length).toBeGreaterThan(0)
  })
})

test('first reads of a block at the same time keep its page table once', async () => {
  const disk = new SimulatedDisk(new Prng(1))
  const reads: number[] = []
  const session = await openSimulated(counted(disk, reads), 1e9)
  const writer = await LogWriter.create(session, 'a')
  await writer.append({ count: COUNT, bodyBytes: 1_000 })
  const range = { ...WHOLE_LOG, from: { seqNum: 500 }, recordsMax: 1 }
  // Its pages times this many are more than stay in memory.
  await Promise.all(Array.from({ length: 1_500 }, () => session.read('a', range)))
  await session.read('a', range)
  reads.length = 0
  await session.read('a', range)
  expect(reads).toHaveLength(1)
  await session.close()
})

/** Counts the bytes of each read. */
function counted(files: Files, reads: number[]): Files {
  return {
    list: () => files.list(),
    rename: (from, to) => files.rename(from, to),
    link: (from, to) => files.link(from, to),
    unlink: (name) => files.unlink(name),
    syncDirectory: () => files.syncDirectory(),
    async open(name, mode) {
      const file = await files.open(name, mode)
      return {
        size: () => file.size(),
        read(buffer, position) {
          reads.push(buffer.length)
          return file.read(buffer, position)
        },
        write: (bytes, position) => file.write(bytes, position),
        truncate: (length) => file.truncate(length),
        isLinked: () => file.isLinked(),
        isNamed: (named) => file.isNamed(named),
        datasync: () => file.datasync(),
        close: () => file.close(),
      }
    },
  }
}

/** Flips a bit in the body of a record, in every file that contains its block. */
function corruptRecord(disk: SimulatedDisk, { data }: StoredBlock, seqNum: number): void {
  const end = recordSpans(data).find((span) => span.seqNum === seqNum)!.end
  for (const name of disk.names) {
    const content = disk.contentOf(name)
    const start = Buffer.from(content.buffer, content.byteOffset, content.length).indexOf(data)
    if (start >= 0) content[start + end - 1]! ^= 1
  }
}

function firstSeqNumAt({ written }: LogWriter, timestamp: number): number {
  const records = recordsOfBlocks(written.map(({ block }) => block))
  return records.find((record) => record.timestamp >= timestamp)!.seqNum
}
