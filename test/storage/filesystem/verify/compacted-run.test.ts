import { expect, test, vi } from 'vitest'
import { FAR, LogWriter, NOW } from '../../../../adapters/conformance/log-writer.ts'
import { verifyFiles } from '../../../../adapters/storage/filesystem/verify/verify-files.ts'
import { Prng } from '../../../../src/runtime/prng.ts'
import { SimulatedDisk } from '../simulated-disk.ts'
import { openSimulated } from '../workload.ts'

const EXPIRY = NOW + 5

test('a compacted run whose last records expired early is sound', async () => {
  const disk = new SimulatedDisk(new Prng(1))
  // Copied, because only copies of several blocks are merged like this.
  const session = await openSimulated(disk, 5_000, 'power-loss', 1_000_000)
  const segments = () => disk.names.filter((name) => /^segment-\d+$/.test(name))
  const log = await LogWriter.create(session, 'a')
  await log.append({ count: 2, expiresAt: FAR })
  await log.append({ count: 2, bodyBytes: 3_000, expiresAt: EXPIRY })
  await vi.waitFor(() => expect(segments()).toEqual(['segment-0000000001']))
  await session.reclaim({ now: EXPIRY, trimmedBefore: NOW, blocksMax: 100 })
  await vi.waitFor(() => expect(segments()).toEqual(['segment-0000000002']))
  await session.close()
  const { problems, notes, records } = await verifyFiles(disk, { ofEngine: false })
  expect([problems, records]).toEqual([[], 2])
  expect(notes).toMatchObject([{ note: expect.stringMatching(/^2 records are missing/), log: 'a' }])
})
