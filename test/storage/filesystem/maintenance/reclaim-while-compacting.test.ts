import { expect, test, vi } from 'vitest'
import { LogWriter, NOW, unmergeableExpiry, WHOLE_LOG } from '../../../../adapters/conformance/log-writer.ts'
import { checkRead } from '../../../../adapters/conformance/model.ts'
import { Prng } from '../../../../src/runtime/prng.ts'
import { Gate, hookedFiles } from '../hooked-files.ts'
import { SimulatedDisk } from '../simulated-disk.ts'
import { NEVER_LARGE, openSimulated } from '../workload.ts'

const ROLL_BYTES = 5_000
const EXPIRY = NOW + 5

test('reclaim finds its blocks although their segments are compacted meanwhile', async () => {
  const disk = new SimulatedDisk(new Prng(1))
  const gate = new Gate((operation, name) => operation === 'read' && name.startsWith('segment'))
  const session = await openSimulated(hookedFiles(disk, gate.hook), ROLL_BYTES, 'power-loss', NEVER_LARGE)
  const kept = await LogWriter.create(session, 'kept')
  const deleted = await LogWriter.create(session, 'deleted')
  const segments = () => disk.names.filter((name) => name.startsWith('segment') && !name.endsWith('.tmp'))
  while (segments().length < 4) {
    await kept.append({ bodyBytes: 100, expiresAt: unmergeableExpiry(kept.head) })
    await kept.append({ bodyBytes: 100, expiresAt: EXPIRY })
    await deleted.append({ bodyBytes: 600 })
  }
  const isReading = gate.arm()
  const reclaiming = session.reclaim({ now: EXPIRY, trimmedBefore: NOW, blocksMax: 1_000 })
  await isReading
  await session.commit([{ kind: 'delete-log', logId: 'deleted' }])
  // The segments of which half was the deleted log's become one. Those that are to be read outlive that.
  const before = segments()
  await vi.waitFor(() => expect(segments().some((name) => name > before.at(-1)!)).toBe(true))
  for (let i = 0; i < 10; i++) {
    await session.commit([{ kind: 'put', collection: 'settings', key: 'a', value: i }])
  }
  gate.open()
  await expect(reclaiming).resolves.toMatchObject({ logIds: ['kept'] })
  for (const expected of kept.written) expected.mayBeFreed = expected.block.expiresAt === EXPIRY
  checkRead(kept.written, WHOLE_LOG, await session.read('kept', WHOLE_LOG))
  await vi.waitFor(() => expect(segments().filter((name) => before.includes(name))).toEqual([]))
  await session.close()
})
