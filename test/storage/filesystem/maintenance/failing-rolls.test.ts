import { expect, test } from 'vitest'
import { LogWriter, WHOLE_LOG } from '../../../../adapters/conformance/log-writer.ts'
import { checkRead } from '../../../../adapters/conformance/model.ts'
import { FILE_HEADER_BYTES } from '../../../../adapters/storage/filesystem/files/file-header.ts'
import { FRAME_HEADER_BYTES, payloadEnd } from '../../../../adapters/storage/filesystem/files/frame.ts'
import { Prng } from '../../../../src/runtime/prng.ts'
import type { StorageFailure } from '../../../../src/storage/errors.ts'
import { hookedFiles, systemError } from '../hooked-files.ts'
import { SimulatedDisk } from '../simulated-disk.ts'
import { openSimulated } from '../workload.ts'

const ROLL_BYTES = 3000
/** Calls that add data are refused beyond this. */
const LIMIT_BYTES = 4 * ROLL_BYTES

test('a damaged page of the checkpoint ends appends at a limit, and loses nothing acknowledged', async () => {
  const { disk, checkpoint } = await withDamagedCheckpoint()
  const session = await openSimulated(disk, ROLL_BYTES)
  const writer = await LogWriter.create(session, 'new')
  const failure = await appendUntilRefused(writer)
  const message = new RegExp(`^journals have grown to \\d+ bytes, .* fails: ${checkpoint} is damaged`)
  expect(failure).toMatchObject({
    kind: 'corrupt',
    nothingWritten: true,
    message: expect.stringMatching(message),
  })
  expect(journalBytes(disk)).toBeGreaterThan(LIMIT_BYTES)
  expect(journalBytes(disk)).toBeLessThan(LIMIT_BYTES + ROLL_BYTES)
  await expect(session.check!()).rejects.toMatchObject({ kind: 'corrupt' })
  checkRead(writer.written, WHOLE_LOG, await session.read('new', WHOLE_LOG))
  await session.close()
  const reopened = await openSimulated(disk, ROLL_BYTES)
  checkRead(writer.written, WHOLE_LOG, await reopened.read('new', WHOLE_LOG))
  await reopened.close()
})

test('appends work again once a roll succeeds', async () => {
  const disk = new SimulatedDisk(new Prng(1))
  let isFailing = true
  const files = hookedFiles(disk, (operation, name, mode) => {
    const isCheckpoint = operation === 'open' && mode === 'create' && name.startsWith('checkpoint')
    if (isCheckpoint && isFailing) throw systemError('EIO')
  })
  const session = await openSimulated(files, ROLL_BYTES)
  const writer = await LogWriter.create(session, 'a')
  expect(await appendUntilRefused(writer)).toMatchObject({ kind: 'io' })
  await settled()
  isFailing = false
  // The refused call makes the storage try again.
  await appendUntilRefused(writer)
  await settled()
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

/** Waits for the work in the background. */
async function settled(): Promise<void> {
  for (let i = 0; i < 100; i++) await new Promise((resolve) => setImmediate(resolve))
}

function journalBytes(disk: SimulatedDisk): number {
  const journals = disk.names.filter((name) => name.startsWith('journal'))
  return journals.reduce((bytes, name) => bytes + disk.contentOf(name).length, 0)
}

/** A directory that was closed, and of whose checkpoint the first page of documents is damaged. */
async function withDamagedCheckpoint() {
  const disk = new SimulatedDisk(new Prng(1))
  const session = await openSimulated(disk, ROLL_BYTES)
  const checkpoint = () => disk.names.find((name) => /^checkpoint-\d+$/.test(name))
  for (let i = 0; checkpoint() === undefined; i++) {
    await session.commit([{ kind: 'put', collection: 'settings', key: `k${i}`, value: 'v'.repeat(100) }])
  }
  await session.close()
  const name = checkpoint()!
  const content = Buffer.from(disk.contentOf(name))
  let offset = FILE_HEADER_BYTES
  while (content[offset + FRAME_HEADER_BYTES] !== 'D'.charCodeAt(0)) offset = payloadEnd(content, offset)
  content[offset + 50]! ^= 1
  const contents = new Map(disk.names.map((one) => [one, disk.contentOf(one)]))
  return { disk: new SimulatedDisk(new Prng(2), contents.set(name, content)), checkpoint: name }
}
