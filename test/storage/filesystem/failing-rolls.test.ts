import { expect, test } from 'vitest'
import { checkRead, NOW, WHOLE_LOG } from '../../../adapters/conformance/blocks.ts'
import { LogWriter } from '../../../adapters/conformance/log-writer.ts'
import { Prng } from '../../../src/runtime/random.ts'
import type { StorageFailure } from '../../../src/storage/errors.ts'
import { hookedFiles, systemError } from './hooked-files.ts'
import { SimulatedDisk } from './simulated-disk.ts'
import { openSimulated } from './workload.ts'

const ROLL_BYTES = 3000

test('appends work again once a roll succeeds', async () => {
  const disk = new SimulatedDisk(new Prng(1))
  let isFailing = true
  let failures = 0
  const files = hookedFiles(disk, (operation, name, mode) => {
    const isCheckpoint = operation === 'open' && mode === 'create' && name.startsWith('checkpoint')
    if (!isCheckpoint || !isFailing) return
    failures++
    throw systemError('EIO')
  })
  const session = await openSimulated(files, ROLL_BYTES)
  const writer = await LogWriter.create(session, 'a')
  expect(await appendUntilRefused(writer)).toMatchObject({ kind: 'io' })
  await expect(session.check!()).rejects.toMatchObject({ kind: 'io' })
  // A call that is refused tries again before.
  const before = failures
  const { names } = disk
  for (let i = 0; i < 3; i++) await appendUntilRefused(writer)
  expect(failures).toBeGreaterThanOrEqual(before + 3)
  expect(disk.names).toEqual(names)
  isFailing = false
  await writer.append()
  await until(() => journalBytes(disk) < ROLL_BYTES)
  await session.check!()
  await writer.append()
  expect(journalBytes(disk)).toBeLessThan(ROLL_BYTES)
  checkRead(writer.written, WHOLE_LOG, await session.read('a', WHOLE_LOG))
  await session.close()
})

test('an opening rolls what an earlier one could not', async () => {
  const disk = new SimulatedDisk(new Prng(1))
  const files = hookedFiles(disk, (operation, name) => {
    if (operation === 'open' && name.startsWith('checkpoint')) throw systemError('EIO')
  })
  const session = await openSimulated(files, ROLL_BYTES)
  const writer = await LogWriter.create(session, 'a')
  await appendUntilRefused(writer)
  await session.close()
  const reopened = await openSimulated(disk, ROLL_BYTES)
  await until(() => journalBytes(disk) < ROLL_BYTES)
  checkRead(writer.written, WHOLE_LOG, await reopened.read('a', WHOLE_LOG))
  await reopened.close()
})

test.each<[string, 'create' | 'undo', string]>([
  ['reports', 'create', 'a session'],
  ['rejects if it is not known whether there is', 'undo', 'EIO'],
])('an opening that has to roll %s a journal that cannot be begun', async (_, failing, expected) => {
  const disk = new SimulatedDisk(new Prng(1))
  const session = await openSimulated(
    hookedFiles(disk, (operation, name) => {
      if (operation === 'open' && name.startsWith('checkpoint')) throw systemError('EIO')
    }),
    ROLL_BYTES,
  )
  await appendUntilRefused(await LogWriter.create(session, 'a'))
  await session.close()
  let isBegun = false
  const files = hookedFiles(disk, (operation, name, mode) => {
    if (isBegun && operation === 'syncDirectory') throw systemError('EIO')
    if (operation !== 'open' || mode !== 'create' || !name.startsWith('journal')) return
    if (failing === 'create') throw systemError('EIO')
    isBegun = true
  })
  const opening = openSimulated(files, ROLL_BYTES)
  if (expected === 'EIO') return expect(opening).rejects.toThrow(expected)
  const reopened = await opening
  expect(await reopened.head('a')).toBeDefined()
  await reopened.close()
})

/** Otherwise the next opening may use a checkpoint that is not the one on which later groups rest. */
test.each([
  ['once', 1, 'nothing'],
  ['once', 1, 'everything'],
  ['nor removed', 2, 'nothing'],
  ['nor removed', 2, 'everything'],
] as const)('a checkpoint that cannot be made durable %s does not count', async (_, failures, loss) => {
  const prng = new Prng(1)
  const disk = new SimulatedDisk(prng)
  let left = Number.NaN
  const files = hookedFiles(disk, (operation, name) => {
    if (operation === 'rename' && name === 'checkpoint-0000000003') left = failures
    if (operation === 'syncDirectory' && left-- > 0) throw systemError('EIO')
  })
  const session = await openSimulated(files, ROLL_BYTES)
  const [a, b] = [await LogWriter.create(session, 'a'), await LogWriter.create(session, 'b')]
  while (!disk.names.includes('checkpoint-0000000002')) await a.append({ bodyBytes: 500 })
  while (Number.isNaN(left)) await b.append({ bodyBytes: 100 }).catch(() => {})
  await until(() => left <= 0)
  const limits = { now: NOW, trimmedBefore: NOW, blocksMax: 100 }
  const writer = new LogWriter(session, 'b', await session.head('b'))
  const acknowledged = writer.head.tail.seqNum
  const freeing = async () => {
    await writer.append({ trimPoint: 2, trimmedAt: NOW })
    await session.commit([{ kind: 'delete-log', logId: 'a' }])
    await session.reclaim(limits)
  }
  if (failures === 1) await freeing()
  else await expect(freeing()).rejects.toMatchObject({ kind: 'io', nothingWritten: true })
  const crashed = disk.crashedAfter(disk.length, loss, prng)
  for (let i = 0; i < 2; i++) {
    const reopened = await openSimulated(crashed, ROLL_BYTES)
    await reopened.reclaim(limits)
    const found = new LogWriter(reopened, 'b', await reopened.head('b'))
    expect(found.head.tail.seqNum).toBeGreaterThanOrEqual(acknowledged)
    await found.measured()
    await reopened.close()
  }
})

/** Appends until an append fails, which has no effect, and returns its failure. */
async function appendUntilRefused(writer: LogWriter): Promise<StorageFailure> {
  for (let i = 0; i < 1000; i++) {
    const before = writer.head
    try {
      await writer.append()
    } catch (error) {
      writer.head = before
      writer.written.pop()
      return error as StorageFailure
    }
  }
  throw new Error('no append was refused')
}

/** Waits for work in the background. */
async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setImmediate(resolve))
}

function journalBytes(disk: SimulatedDisk): number {
  const journals = disk.names.filter((name) => name.startsWith('journal'))
  return journals.reduce((bytes, name) => bytes + disk.contentOf(name).length, 0)
}
