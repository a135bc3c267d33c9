import { expect, test } from 'vitest'
import { LogWriter, WHOLE_LOG } from '../../../../adapters/conformance/log-writer.ts'
import { checkRead } from '../../../../adapters/conformance/model.ts'
import { Prng } from '../../../../src/runtime/prng.ts'
import { SimulatedDisk } from '../simulated-disk.ts'
import { openSimulated } from '../workload.ts'

const ROLL_BYTES = 3000

test.each([1, 2, 3])(
  'durability process-crash: nothing is written after a failed sync, and the directory opens after a power loss (seed %i)',
  async (seed) => {
    const disk = new SimulatedDisk(new Prng(seed))
    const session = await openSimulated(disk, ROLL_BYTES, 'process-crash')
    const writer = await LogWriter.create(session, 'a')
    let failures = 1
    disk.faults = (operation) => (operation === 'datasync' && failures-- > 0 ? 'EIO' : undefined)
    let { head } = writer
    for (;;) {
      expect(writer.written.length, 'appends without a failure').toBeLessThan(1000)
      const error = await writer.append({ bodyBytes: 200 }).then(
        () => undefined,
        (failure: unknown) => failure,
      )
      if (error !== undefined) {
        expect(error).toMatchObject({ kind: 'io', nothingWritten: true })
        break
      }
      head = writer.head
    }
    await expect(new LogWriter(session, 'a', head).append()).rejects.toMatchObject({
      kind: 'io',
      nothingWritten: true,
    })
    checkRead(writer.written.slice(0, -1), WHOLE_LOG, await session.read('a', WHOLE_LOG))
    await session.close()
    for (let count = 0; count <= disk.length; count++) {
      const crashed = disk.crashedAfter(count, 'everything', new Prng(1))
      await (await openSimulated(crashed, ROLL_BYTES)).close()
    }
  },
)

test('durability process-crash: a write that cannot be truncated ends its journal, and the directory opens after a power loss', async () => {
  const disk = new SimulatedDisk(new Prng(1))
  const session = await openSimulated(disk, ROLL_BYTES, 'process-crash')
  const writer = await LogWriter.create(session, 'a')
  await writer.append()
  const { head } = writer
  // The write and the truncation.
  let failures = 2
  disk.faults = (operation) => (operation === 'write' && failures-- > 0 ? 'EIO' : undefined)
  await expect(writer.append()).rejects.toMatchObject({ kind: 'io', nothingWritten: true })
  await new LogWriter(session, 'a', head).append()
  for (let count = 0; count <= disk.length; count++) {
    const crashed = disk.crashedAfter(count, 'everything', new Prng(1))
    await (await openSimulated(crashed, ROLL_BYTES)).close()
  }
})
