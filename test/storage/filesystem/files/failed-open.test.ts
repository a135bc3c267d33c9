import { expect, test, vi } from 'vitest'
import { LogWriter, WHOLE_LOG } from '../../../../adapters/conformance/log-writer.ts'
import { RESERVE_NAME } from '../../../../adapters/storage/filesystem/files/reserve.ts'
import { Prng } from '../../../../src/runtime/prng.ts'
import { hookedFiles, systemError } from '../hooked-files.ts'
import { SimulatedDisk } from '../simulated-disk.ts'
import { openSimulated } from '../workload.ts'

test('a failure to open a file fails one read and no later ones', async () => {
  const { session } = await opened(1_000_000)
  await expect(session.read('a', WHOLE_LOG)).rejects.toMatchObject({ kind: 'io', nothingWritten: true })
  await expect(session.read('a', WHOLE_LOG)).resolves.toHaveLength(1)
  await session.close()
})

test('a failure to open a journal does not prevent later rolls', async () => {
  const { disk, session, writer } = await opened(3_000)
  for (let i = 0; i < 100; i++) await writer.append({ bodyBytes: 200 })
  await vi.waitFor(() => expect(disk.names.some((name) => name.startsWith('checkpoint'))).toBe(true))
  await session.close()
})

/** With one record, on a system that cannot open the next file that is to be read. */
async function opened(rollBytes: number) {
  const disk = new SimulatedDisk(new Prng(1))
  let failures = 1
  const files = hookedFiles(disk, (operation, name, mode) => {
    const isRead = operation === 'open' && mode === 'read' && name !== RESERVE_NAME
    if (isRead && failures-- > 0) throw systemError('EMFILE')
  })
  const session = await openSimulated(files, rollBytes)
  const writer = await LogWriter.create(session, 'a')
  await writer.append()
  return { disk, session, writer }
}
