import { expect, test, vi } from 'vitest'
import { LogWriter, NOW, WHOLE_LOG } from '../../../../adapters/conformance/log-writer.ts'
import { checkRead } from '../../../../adapters/conformance/model.ts'
import { Prng } from '../../../../src/runtime/prng.ts'
import { hookedFiles, systemError } from '../hooked-files.ts'
import { SimulatedDisk } from '../simulated-disk.ts'
import { openSimulated } from '../workload.ts'

const ROLL_BYTES = 20_000
const LARGE_BLOCK_BYTES = 1_000
const DAMAGED = 'segment-0000000003'
const RECLAIM = { now: NOW, trimmedBefore: NOW, blocksMax: 10_000 }

test.each(['damaged', 'unreadable'])(
  'an adopted journal that is %s is kept, and the others are compacted',
  async (state) => {
    const disk = new SimulatedDisk(new Prng(1))
    let isUnreadable = false
    const files = hookedFiles(disk, (operation, name) => {
      if (isUnreadable && operation === 'read' && name === DAMAGED) throw systemError('EIO')
    })
    const session = await openSimulated(files, ROLL_BYTES, 'power-loss', LARGE_BLOCK_BYTES)
    const writers = await Promise.all(['a', 'b', 'c', 'd'].map((logId) => LogWriter.create(session, logId)))
    for (let round = 0; round < 200; round++) {
      await Promise.all(writers.map((writer) => writer.append({ bodyBytes: LARGE_BLOCK_BYTES })))
    }
    const [kept, ...trimmed] = writers
    const before = disk.bytes
    if (state === 'unreadable') isUnreadable = true
    else for (let i = 64; i < disk.contentOf(DAMAGED).length; i += 64) disk.contentOf(DAMAGED)[i]! ^= 1
    for (const writer of trimmed) {
      await writer.append({ trimPoint: writer.head.tail.seqNum, trimmedAt: NOW })
      for (const expected of writer.written.slice(0, -1)) expected.mayBeFreed = true
    }
    await session.reclaim(RECLAIM)
    await vi.waitFor(() => expect(disk.bytes).toBeLessThan(before / 2))
    expect(disk.names).toContain(DAMAGED)
    await expect(session.reclaim(RECLAIM)).rejects.toThrow(state === 'damaged' ? DAMAGED : 'EIO')
    await session.reclaim(RECLAIM)
    for (const { logId, written } of trimmed) {
      checkRead(written, WHOLE_LOG, await session.read(logId, WHOLE_LOG))
    }
    await expect(session.read(kept!.logId, WHOLE_LOG)).rejects.toThrow()
    const behind = { ...WHOLE_LOG, from: { seqNum: kept!.head.tail.seqNum - 50 } }
    checkRead(kept!.written, behind, await session.read(kept!.logId, behind))
    await session.close()
  },
)
