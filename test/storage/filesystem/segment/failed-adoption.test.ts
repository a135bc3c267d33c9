// @module-tag slow

import { expect, test, vi } from 'vitest'
import { LogWriter, NOW, WHOLE_LOG } from '../../../../adapters/conformance/log-writer.ts'
import { checkRead } from '../../../../adapters/conformance/model.ts'
import { verifyFiles } from '../../../../adapters/storage/filesystem/verify/verify-files.ts'
import { Prng } from '../../../../src/runtime/prng.ts'
import type { StorageSession, StoredBlock } from '../../../../src/storage/contract.ts'
import { hookedFiles } from '../hooked-files.ts'
import { SimulatedDisk } from '../simulated-disk.ts'
import { openSimulated } from '../workload.ts'

const LARGE_BLOCK_BYTES = 1_000
const NEVER = 100_000_000
const ROLL_BYTES = 50_000
const JOURNAL = 'journal-0000000001'
const SEGMENT = 'segment-0000000001'
const LARGE_BLOCKS = 12
/** Some more operations than an adoption has, up to the removal of the journal. */
const MOMENTS = 30

interface Moment {
  readonly session: StorageSession
  /** One that is kept, one that is trimmed, one that is deleted. */
  readonly writers: readonly LogWriter[]
}

/** What happens while a journal is adopted, between any two operations on files. */
test.each<[string, (moment: Moment) => Promise<unknown>]>([
  ['closing', ({ session }) => session.close()],
  ['reading', ({ session, writers }) => readWhole(session, writers[0]!)],
  ['freeing', ({ session }) => session.reclaim({ now: NOW, trimmedBefore: NOW, blocksMax: 1_000 })],
  [
    'deleting and recreating a log',
    async ({ session, writers }) => {
      const { logId } = writers[2]!
      await session.commit([{ kind: 'delete-log', logId }])
      await LogWriter.create(session, logId)
    },
  ],
])('%s at any moment of an adoption loses nothing and leaves no files', async (fault, happen) => {
  let complete = 0
  for (let moment = 0; moment < MOMENTS; moment++) {
    const { disk, session, writers, happened } = await during(moment, happen)
    await happened
    if (fault !== 'closing') {
      await vi.waitFor(() => expect(disk.names).not.toContain(JOURNAL))
      await session.close()
    }
    const isDeleted = fault.startsWith('deleting')
    const remaining = writers.slice(0, isDeleted ? 2 : 3)
    if (disk.names.includes(SEGMENT)) complete++
    const { problems, notes } = await verifyFiles(disk, { ofEngine: false })
    // The closing group is not part of a journal that another one follows.
    const unexpected = notes.filter(({ note }) => !note.endsWith('bytes after its end'))
    expect([...problems, ...unexpected], `moment ${moment}`).toEqual([])
    const reopened = await openSimulated(disk, NEVER, 'power-loss', LARGE_BLOCK_BYTES)
    for (const writer of remaining) await readWhole(reopened, writer)
    if (isDeleted) expect(await reopened.read(writers[2]!.logId, WHOLE_LOG)).toEqual([])
    await reopened.close()
  }
  expect(complete).toBeGreaterThan(0)
})

/** An opening adopts the first journal at once; the event happens this many file operations later. */
async function during(moment: number, happen: (moment: Moment) => Promise<unknown>) {
  const disk = new SimulatedDisk(new Prng(1))
  const writing = await openSimulated(disk, NEVER, 'power-loss', LARGE_BLOCK_BYTES)
  const names = ['kept', 'trimmed', 'deleted']
  const first = await Promise.all(names.map((logId) => LogWriter.create(writing, logId)))
  for (let i = 0; i < LARGE_BLOCKS; i++) {
    for (const writer of first) {
      await writer.append({ bodyBytes: 2 * LARGE_BLOCK_BYTES })
      await writer.append()
    }
  }
  await first[1]!.append({ trimPoint: LARGE_BLOCKS, trimmedAt: NOW })
  for (const expected of first[1]!.written) expected.mayBeFreed = expected.block.endSeqNum <= LARGE_BLOCKS
  await writing.close()

  let remaining = Number.POSITIVE_INFINITY
  let come = (): void => {}
  const hooked = hookedFiles(disk, (operation, name) => {
    if (remaining-- === 0 || (operation === 'unlink' && name === JOURNAL)) come()
  })
  const happened = new Promise<unknown>((resolve) => {
    come = () => {
      come = () => {}
      resolve(happen({ session, writers }))
    }
  })
  const session = await openSimulated(hooked, ROLL_BYTES, 'power-loss', LARGE_BLOCK_BYTES)
  const writers = first.map(({ logId, head, written }) => new LogWriter(session, logId, head, written))
  remaining = moment
  return { disk, session, writers, happened }
}

async function readWhole(session: StorageSession, { logId, written }: LogWriter): Promise<StoredBlock[]> {
  const blocks = await session.read(logId, WHOLE_LOG)
  checkRead(written, WHOLE_LOG, blocks)
  return blocks
}
