import { describe, expect, test } from 'vitest'
import { checkRead, NOW, WHOLE_LOG } from '../../../adapters/conformance/blocks.ts'
import { LogWriter, reclaimAll } from '../../../adapters/conformance/log-writer.ts'
import { Space } from '../../../adapters/storage/log/space.ts'
import { directoryMedium } from '../../../adapters/storage/media/directory.ts'
import { Prng } from '../../../src/runtime/random.ts'
import type { StorageSession } from '../../../src/storage/contract.ts'
import { systemError } from './hooked-files.ts'
import { SimulatedDisk } from './simulated-disk.ts'
import { openSimulated } from './workload.ts'

const ROLL_BYTES = 20_000
const RECORD_BYTES = 500
const ROUNDS = 20
const RECLAIM = { now: NOW, trimmedBefore: NOW, blocksMax: 7 }

test('a write that ends after the reserve was given up does not hide that the disk is full', async () => {
  const disk = new SimulatedDisk(new Prng(1))
  const space = new Space(await directoryMedium(disk), 4096, false)
  await space.write('adds', async () => {})
  let end!: () => void
  const written = new Promise<void>((resolve) => {
    end = resolve
  })
  const adding = space.write('adds', () => written)
  let isFirst = true
  await space.write('frees', async () => {
    if (isFirst) {
      isFirst = false
      throw systemError('ENOSPC')
    }
  })
  end()
  await adding
  expect(disk.names).toEqual([])
  expect(space.isFull).toBe(true)
  await space.makeRoom(false)
  expect(disk.names).toEqual(['reserve'])
  expect(space.isFull).toBe(false)
})

describe('frees the space', () => {
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
    const { disk, session, writers } = await filled({ expiresAt: NOW + 5 })
    const before = disk.bytes
    expect(before).toBeGreaterThan(120_000)
    await release(session, writers)
    await settled(session, () => disk.bytes < 3 * ROLL_BYTES)
    await session.close()
    await (await openSimulated(disk, ROLL_BYTES)).close()
    expect(disk.bytes).toBeLessThan(3 * ROLL_BYTES)
  })

  test('of half of every segment, and keeps the live blocks', async () => {
    const { disk, session, writers } = await filled({})
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

/** Four logs with the same, over many segments. */
async function filled({ expiresAt }: { expiresAt?: number }) {
  const disk = new SimulatedDisk(new Prng(1))
  const session = await openSimulated(disk, ROLL_BYTES)
  const writers = await Promise.all(['a', 'b', 'c', 'd'].map((logId) => LogWriter.create(session, logId)))
  for (let round = 0; round < ROUNDS; round++) {
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
