import { expect, test, vi } from 'vitest'
import { LogWriter, NOW, unmergeableExpiry, WHOLE_LOG } from '../../../../adapters/conformance/log-writer.ts'
import { checkRead } from '../../../../adapters/conformance/model.ts'
import { Prng } from '../../../../src/runtime/prng.ts'
import { Gate, hookedFiles } from '../hooked-files.ts'
import { SimulatedDisk } from '../simulated-disk.ts'
import { openSimulated } from '../workload.ts'

const ROLL_BYTES = 3_000
const TRIM_POINT = 17

test('a read across runs that are being freed omits nothing else', async () => {
  const { session, writer, gate, append, segments } = await opened()
  while (segments().length < 4) {
    const before = segments().length
    for (let i = 0; i < 8; i++) await append()
    await vi.waitFor(() => expect(segments().length).toBeGreaterThan(before))
  }
  await append()
  const isReading = gate.arm()
  const range = { ...WHOLE_LOG, from: { seqNum: 5 }, bytesMax: 1_300 }
  const reading = session.read('a', range)
  await isReading
  await append({ trimPoint: TRIM_POINT, trimmedAt: NOW })
  await session.reclaim({ now: NOW, trimmedBefore: NOW, blocksMax: 1_000 })
  gate.open()
  for (const expected of writer.written) expected.mayBeFreed = expected.block.endSeqNum <= TRIM_POINT
  checkRead(writer.written, range, await reading)
  checkRead(writer.written, WHOLE_LOG, await session.read('a', WHOLE_LOG))
  await session.close()
})

/** Blocks that do not become one, on a disk on which a read of a segment can be stopped. */
async function opened() {
  const disk = new SimulatedDisk(new Prng(1))
  const gate = new Gate((operation, name) => operation === 'read' && name.startsWith('segment'))
  const session = await openSimulated(hookedFiles(disk, gate.hook), ROLL_BYTES)
  const writer = await LogWriter.create(session, 'a')
  const append = (spec = {}) =>
    writer.append({ bodyBytes: 300, expiresAt: unmergeableExpiry(writer.head), ...spec })
  const segments = () => disk.names.filter((name) => name.startsWith('segment') && !name.endsWith('.tmp'))
  return { session, writer, gate, append, segments }
}
