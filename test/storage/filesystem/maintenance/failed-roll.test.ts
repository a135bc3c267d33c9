import { describe, expect, test, vi } from 'vitest'
import { LogWriter, NOW, WHOLE_LOG } from '../../../../adapters/conformance/log-writer.ts'
import { checkRead } from '../../../../adapters/conformance/model.ts'
import { Run, type RunFacts, Segment } from '../../../../adapters/storage/filesystem/state/segment.ts'
import { State } from '../../../../adapters/storage/filesystem/state/state.ts'
import { Prng } from '../../../../src/runtime/prng.ts'
import { Gate, hookedFiles, systemError } from '../hooked-files.ts'
import { type Loss, SimulatedDisk } from '../simulated-disk.ts'
import { openSimulated } from '../workload.ts'

const RECLAIM = { now: NOW, trimmedBefore: NOW, blocksMax: 100 }
const LOSSES: readonly Loss[] = ['nothing', 'everything', 'some', 'some']

describe.each([
  ['blocks that are copied', 20],
  ['an adopted journal', 200],
])('a checkpoint of %s whose name could not be synced', (_, bodyBytes) => {
  test.each(LOSSES)('loses nothing, after a crash that loses %s', async (loss) => {
    const { disk, session, writer } = await afterFailedRoll(1, bodyBytes)
    expect(disk.links).toBe(bodyBytes === 20 ? 0 : 1)
    await writer.append({ trimPoint: 1, trimmedAt: NOW })
    // The first call reports the failed roll.
    await session.reclaim(RECLAIM).catch(() => {})
    await session.reclaim(RECLAIM)
    writer.written[0]!.mayBeFreed = true
    checkRead(writer.written, WHOLE_LOG, await session.read('a', WHOLE_LOG))
    const reopened = await openSimulated(disk.crashedAfter(disk.length, loss, new Prng(2)), 3000)
    checkRead(writer.written, WHOLE_LOG, await reopened.read('a', WHOLE_LOG))
  })
})

test('nothing is freed until the checkpoint is removed', async () => {
  const { disk, session, writer } = await afterFailedRoll(Number.POSITIVE_INFINITY)
  await writer.append({ trimPoint: 1, trimmedAt: NOW })
  for (let i = 0; i < 3; i++) await expect(session.reclaim(RECLAIM)).rejects.toThrow('EMFILE')
  for (const loss of LOSSES) {
    const reopened = await openSimulated(disk.crashedAfter(disk.length, loss, new Prng(2)), 3000)
    checkRead(writer.written, WHOLE_LOG, await reopened.read('a', WHOLE_LOG))
  }
})

test('a later roll succeeds and leaves no files of the failed one', async () => {
  const { disk, session, writer, repair } = await afterFailedRoll(Number.POSITIVE_INFINITY)
  repair()
  const segments = disk.names.filter((name) => name.startsWith('segment'))
  const checkpoints = () => disk.names.filter((name) => name.startsWith('checkpoint'))
  expect(segments).toHaveLength(1)
  for (let i = 0; checkpoints().length === 0 || disk.names.includes(segments[0]!); i++) {
    expect(i, 'appends without a roll').toBeLessThan(1000)
    await writer.append()
  }
  await session.close()
  expect(disk.names).not.toContain(segments[0])
})

test('a journal that cannot be removed keeps no other file, and is removed after a later roll', async () => {
  const disk = new SimulatedDisk(new Prng(1))
  const first = 'journal-0000000001'
  let isFailing = true
  const files = hookedFiles(disk, (operation, name) => {
    if (isFailing && operation === 'unlink' && name === first) throw systemError('EBUSY')
  })
  const session = await openSimulated(files, 3000)
  const writer = await LogWriter.create(session, 'a')
  const filesOf = (kind: string) => disk.names.filter((name) => new RegExp(`^${kind}-\\d+$`).test(name))
  const nextRoll = async () => {
    const before = filesOf('checkpoint').at(-1)
    while (filesOf('checkpoint').at(-1) === before) await writer.append()
    // Waits for the end of the roll.
    return session.reclaim(RECLAIM).then(() => session.reclaim(RECLAIM))
  }
  for (let i = 0; i < 2; i++) {
    await expect(nextRoll()).rejects.toThrow('EBUSY')
    expect(filesOf('journal')).toEqual([first, expect.any(String)])
    expect(filesOf('checkpoint')).toHaveLength(1)
  }
  isFailing = false
  await nextRoll()
  expect(filesOf('journal')).toHaveLength(1)
  await session.close()
})

test('a checkpoint is closed if the storage stops writing before it is used', async () => {
  const disk = new SimulatedDisk(new Prng(1))
  const gate = new Gate((operation, name, mode) => {
    return operation === 'open' && mode === 'read' && name.startsWith('checkpoint')
  })
  let open = 0
  const files = hookedFiles(disk, (...operation) => {
    const [kind, name] = operation
    if (name.startsWith('checkpoint')) open += kind === 'open' ? 1 : kind === 'close' ? -1 : 0
    return gate.hook(...operation)
  })
  const session = await openSimulated(files, 3000)
  const writer = await LogWriter.create(session, 'a')
  let isOpening = false
  const opening = gate.arm().then(() => {
    isOpening = true
  })
  while (!isOpening) await writer.append()
  const apply = vi.spyOn(State.prototype, 'apply').mockImplementationOnce(() => {
    throw new RangeError('injected')
  })
  await expect(writer.append()).rejects.toThrow('injected')
  apply.mockRestore()
  gate.open()
  await opening
  await session.close()
  expect(open).toBe(0)
})

test.each([
  ['more blocks than there are', { blocks: 3, meteredBytes: 20 }],
  ['more bytes than there are', { blocks: 1, meteredBytes: 21 }],
  ['all blocks, and not all bytes', { blocks: 2, meteredBytes: 10 }],
])('a run rejects freeing %s', (_, count) => {
  const facts = { blocks: 2, meteredBytes: 20, liveBytes: 30, firstSeqNum: 0, endSeqNum: 2, holes: [] }
  const run = new Run(
    new Segment({ number: 1, salt: 0, bytes: 100, journal: 0 }),
    facts as unknown as RunFacts,
  )
  expect(() => run.free({ from: 0, to: 1, bytes: 15, ...count })).toThrow(RangeError)
  expect(run).toMatchObject({ blocks: 2, meteredBytes: 20, liveBytes: 30, holes: [] })
})

/**
 * A session whose first syncs of the directory fail, this many, once the first checkpoint has its name.
 */
async function afterFailedRoll(failures: number, bodyBytes = 20) {
  const disk = new SimulatedDisk(new Prng(1))
  let isNamed = false
  let failuresLeft = failures
  let failed = 0
  const files = hookedFiles(disk, (operation) => {
    isNamed ||= disk.names.some((name) => /^checkpoint-\d+$/.test(name))
    if (operation !== 'syncDirectory' || !isNamed || failuresLeft === 0) return
    failuresLeft--
    failed++
    throw systemError('EMFILE')
  })
  const session = await openSimulated(files, 3000)
  const writer = await LogWriter.create(session, 'a')
  while (failed === 0) await writer.append({ bodyBytes })
  const repair = (): void => {
    failuresLeft = 0
  }
  return { disk, session, writer, repair }
}
