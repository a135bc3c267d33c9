import { describe, expect, test } from 'vitest'
import { LogWriter, NOW, WHOLE_LOG } from '../../../../adapters/conformance/log-writer.ts'
import { checkRead } from '../../../../adapters/conformance/model.ts'
import { reclaimAll } from '../../../../adapters/conformance/reclaim.ts'
import { Prng } from '../../../../src/runtime/prng.ts'
import type { StorageSession } from '../../../../src/storage/contract.ts'
import { SimulatedDisk } from '../simulated-disk.ts'
import { NEVER_LARGE, openSimulated } from '../workload.ts'

const ROLL_BYTES = 20_000
const RECORD_BYTES = 500
const RECLAIM = { now: NOW, trimmedBefore: NOW, blocksMax: 7 }

describe.each([
  ['of blocks that were copied', NEVER_LARGE],
  ['of blocks in adopted journals', RECORD_BYTES],
])('frees the space, %s,', (_, largeBlockBytes) => {
  test.each<[string, (session: StorageSession, writers: LogWriter[]) => Promise<void>]>([
    [
      'trimmed records',
      async (session, writers) => {
        for (const writer of writers) {
          await writer.append({ trimPoint: writer.head.tail.seqNum, trimmedAt: NOW })
        }
        await reclaimAll(session, RECLAIM)
      },
    ],
    [
      'deleted logs',
      async (session, writers) => {
        await session.commit(writers.map(({ logId }) => ({ kind: 'delete-log', logId })))
      },
    ],
    ['expired records', async (session) => void (await reclaimAll(session, { ...RECLAIM, now: NOW + 10 }))],
  ])('of %s', async (_, release) => {
    const { disk, session, writers } = await filled({ expiresAt: NOW + 5, largeBlockBytes })
    expect(disk.links > 0).toBe(largeBlockBytes === RECORD_BYTES)
    const before = disk.bytes
    expect(before).toBeGreaterThan(400_000)
    await release(session, writers)
    await settled(session, () => disk.bytes < 3 * ROLL_BYTES)
    await session.close()
    await (await openSimulated(disk, ROLL_BYTES, 'power-loss', largeBlockBytes)).close()
    expect(disk.bytes).toBeLessThan(3 * ROLL_BYTES)
  })

  test('of half of every segment, and keeps the live blocks', async () => {
    const { disk, session, writers } = await filled({ largeBlockBytes })
    const before = disk.bytes
    for (const writer of writers) {
      const trimPoint = Math.floor(writer.head.tail.seqNum * 0.7)
      await writer.append({ trimPoint, trimmedAt: NOW, expiresAt: NOW + 1_000_000 })
    }
    await reclaimAll(session, RECLAIM)
    await settled(session, () => disk.bytes < 0.65 * before)
    for (const writer of writers) {
      for (const expected of writer.written) {
        expected.mayBeFreed = expected.block.endSeqNum <= writer.head.trimPoint
      }
      checkRead(writer.written, WHOLE_LOG, await session.read(writer.logId, WHOLE_LOG))
    }
    await session.close()
  })
})

test('a log of many small appends has few runs', async () => {
  const { disk, session } = await filled({ rounds: 120, largeBlockBytes: NEVER_LARGE })
  const segments = () => disk.names.filter((name) => name.startsWith('segment')).length
  await settled(session, () => segments() <= 16)
  await session.close()
})

test('a segment with a few bytes of records is not compacted', async () => {
  const disk = new SimulatedDisk(new Prng(1))
  const session = await openSimulated(disk, ROLL_BYTES, 'power-loss', 1_000)
  const writer = await LogWriter.create(session, 'a')
  const segments = () => disk.names.filter((name) => name.startsWith('segment'))
  await writer.append({ count: 1, bodyBytes: 0 })
  await writer.append({ count: 1, bodyBytes: ROLL_BYTES })
  await settled(session, () => disk.names.some((name) => name.startsWith('checkpoint')))
  const before = segments()
  expect(before).toHaveLength(2)
  for (let i = 0; i < 50; i++) {
    await session.commit([{ kind: 'put', collection: 'settings', key: 'b', value: i }])
  }
  expect(segments()).toEqual(before)
  await session.close()
})

test('adjacent small blocks become one block', async () => {
  const disk = new SimulatedDisk(new Prng(1))
  const session = await openSimulated(disk, ROLL_BYTES)
  const writer = await LogWriter.create(session, 'a')
  for (let i = 0; i < 100; i++) await writer.append({ count: 2 })
  await settled(session, () => disk.names.some((name) => name.startsWith('checkpoint')))
  const blocks = await session.read('a', WHOLE_LOG)
  expect(blocks.length).toBeLessThan(100)
  checkRead(writer.written, WHOLE_LOG, blocks)
  await session.close()
})

/** Four logs with the same, over many segments. */
async function filled(options: { rounds?: number; expiresAt?: number; largeBlockBytes: number }) {
  const { rounds = 60, expiresAt, largeBlockBytes } = options
  const disk = new SimulatedDisk(new Prng(1))
  const session = await openSimulated(disk, ROLL_BYTES, 'power-loss', largeBlockBytes)
  const writers = await Promise.all(['a', 'b', 'c', 'd'].map((logId) => LogWriter.create(session, logId)))
  for (let round = 0; round < rounds; round++) {
    const spec = { count: 4, bodyBytes: RECORD_BYTES, expiresAt }
    await Promise.all(writers.map((writer) => writer.append(spec)))
  }
  return { disk, session, writers }
}

const COMMITS_MAX = 5_000

/** Continues to write a little, as an engine does, until the condition holds. */
async function settled(session: StorageSession, isSettled: () => boolean): Promise<void> {
  for (let i = 0; !isSettled(); i++) {
    expect(i, 'commits without effect').toBeLessThan(COMMITS_MAX)
    await session.commit([{ kind: 'put', collection: 'settings', key: 'a', value: i }])
  }
}
