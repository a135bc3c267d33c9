import { setImmediate } from 'node:timers/promises'
import { expect, test, vi } from 'vitest'
import { LogWriter, NOW, WHOLE_LOG } from '../../../../adapters/conformance/log-writer.ts'
import { checkRead } from '../../../../adapters/conformance/model.ts'
import { reclaimAll } from '../../../../adapters/conformance/reclaim.ts'
import { Prng } from '../../../../src/runtime/prng.ts'
import { type Hook, hookedFiles } from '../hooked-files.ts'
import { SimulatedDisk } from '../simulated-disk.ts'
import { openSimulated } from '../workload.ts'

const ROLL_BYTES = 20_000
const LARGE_BLOCK_BYTES = 1_000

test('adopted journals that are mostly freed are compacted without further writes', async () => {
  const { disk, session, writers } = await adopted()
  await freeMost(session, writers)
  await untilFreed(disk, writers)
  await vi.waitFor(() => expectIdle(disk))
  await expectLive(session, writers)
})

test('a later opening that writes nothing compacts them, too', async () => {
  const { disk, session, writers } = await adopted()
  await freeMost(session, writers)
  await session.close()
  expect(disk.bytes).toBeGreaterThan(2 * liveBytes(writers))
  const reopened = await openSimulated(disk, ROLL_BYTES, 'power-loss', LARGE_BLOCK_BYTES)
  await untilFreed(disk, writers)
  await expectLive(reopened, writers)
})

test('files that become unused during a removal are removed', async () => {
  const { disk, session, writers } = await adopted(async (operation, name) => {
    if (operation !== 'unlink' || !name.startsWith('segment')) return
    for (let turns = 0; turns < 30; turns++) await setImmediate()
  })
  await freeMost(session, writers)
  await untilFreed(disk, writers)
  await expectLive(session, writers)
})

/** Four logs of large blocks, over many adopted journals. */
async function adopted(hook: Hook = () => {}) {
  const disk = new SimulatedDisk(new Prng(1))
  const session = await openSimulated(hookedFiles(disk, hook), ROLL_BYTES, 'power-loss', LARGE_BLOCK_BYTES)
  const writers = await Promise.all(['a', 'b', 'c', 'd'].map((logId) => LogWriter.create(session, logId)))
  for (let round = 0; round < 200; round++) {
    await Promise.all(writers.map((writer) => writer.append({ bodyBytes: LARGE_BLOCK_BYTES })))
  }
  expect(disk.links).toBeGreaterThan(30)
  return { disk, session, writers }
}

type Adopted = Awaited<ReturnType<typeof adopted>>

/** Trims and frees three of the four logs. */
async function freeMost(session: Adopted['session'], writers: Adopted['writers']): Promise<void> {
  for (const writer of writers.slice(1)) {
    await writer.append({ trimPoint: writer.head.tail.seqNum, trimmedAt: NOW })
    for (const expected of writer.written.slice(0, -1)) expected.mayBeFreed = true
  }
  await reclaimAll(session, { now: NOW, trimmedBefore: NOW, blocksMax: 10_000 })
}

/** Waits without writing. */
function untilFreed(disk: SimulatedDisk, writers: Adopted['writers']): Promise<void> {
  return vi.waitFor(() => expect(disk.bytes).toBeLessThan(2 * liveBytes(writers)))
}

/** Expects no further operations once the space is freed. */
async function expectIdle(disk: SimulatedDisk): Promise<void> {
  const { length } = disk
  for (let turns = 0; turns < 200; turns++) await setImmediate()
  expect(disk.length).toBe(length)
}

function liveBytes(writers: Adopted['writers']): number {
  const live = writers.flatMap(({ written }) => written.filter(({ mayBeFreed }) => !mayBeFreed))
  return live.reduce((sum, { block }) => sum + block.data.length, 0)
}

async function expectLive(session: Adopted['session'], writers: Adopted['writers']): Promise<void> {
  for (const { logId, written } of writers) {
    checkRead(written, WHOLE_LOG, await session.read(logId, WHOLE_LOG))
  }
  await session.close()
}
