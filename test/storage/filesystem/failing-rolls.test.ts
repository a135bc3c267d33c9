import { expect, test } from 'vitest'
import { checkRead, WHOLE_LOG } from '../../../adapters/conformance/blocks.ts'
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
  await appendUntilRefused(writer)
  expect(failures).toBeGreaterThan(before)
  isFailing = false
  await writer.append()
  await until(() => journalBytes(disk) < ROLL_BYTES)
  await session.check!()
  await writer.append()
  expect(journalBytes(disk)).toBeLessThan(ROLL_BYTES)
  checkRead(writer.written, WHOLE_LOG, await session.read('a', WHOLE_LOG))
  await session.close()
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
