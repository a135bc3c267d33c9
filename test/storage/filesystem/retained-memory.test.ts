import { expect, test } from 'vitest'
import { LogWriter, WHOLE_LOG } from '../../../adapters/conformance/log-writer.ts'
import { checkRead } from '../../../adapters/conformance/model.ts'
import { Prng } from '../../../src/runtime/prng.ts'
import { SimulatedDisk } from './simulated-disk.ts'
import { openSimulated } from './workload.ts'

test('blocks read from a journal do not retain the data of other logs between them', async () => {
  const session = await openSimulated(new SimulatedDisk(new Prng(1)), 100_000_000)
  const small = await LogWriter.create(session, 'small')
  const large = await LogWriter.create(session, 'large')
  for (let i = 0; i < 40; i++) {
    await small.append({ bodyBytes: 50 })
    await large.append({ bodyBytes: 12_000 })
  }
  const blocks = await session.read('small', WHOLE_LOG)
  checkRead(small.written, WHOLE_LOG, blocks)
  const buffers = new Set(blocks.map(({ data }) => data.buffer))
  const held = [...buffers].reduce((sum, { byteLength }) => sum + byteLength, 0)
  const wanted = blocks.reduce((sum, { data }) => sum + data.length, 0)
  expect(held).toBeLessThan(2 * wanted)
  await session.close()
})
