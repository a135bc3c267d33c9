import { expect, test, vi } from 'vitest'
import { FILE_HEADER_BYTES } from '../../../../adapters/storage/filesystem/files/file-header.ts'
import { FRAME_HEADER_BYTES } from '../../../../adapters/storage/filesystem/files/frame.ts'
import { SequentialReader } from '../../../../adapters/storage/filesystem/files/sequential-reader.ts'
import {
  CHECKPOINT_FRAME_BYTES as FRAME_BYTES,
  type Snapshot,
  writeCheckpoint,
} from '../../../../adapters/storage/filesystem/state/checkpoint.ts'
import { openCheckpoint } from '../../../../adapters/storage/filesystem/state/checkpoint-file.ts'
import { Prng } from '../../../../src/runtime/prng.ts'
import { hookedFiles, systemError } from '../hooked-files.ts'
import { SimulatedDisk } from '../simulated-disk.ts'
import { openSimulated } from '../workload.ts'

const NAME = 'checkpoint-0000000001'

test('the largest document that a commit accepts survives a roll', async () => {
  const disk = new SimulatedDisk(new Prng(1))
  const session = await openSimulated(disk, 1_000_000)
  const put = (key: string, value: string) =>
    session.commit([{ kind: 'put', collection: 'settings', key, value }])
  for (let i = 0; i < 50; i++) await put(`a${i}`, 'y'.repeat(200))
  const largest = 'x'.repeat(64 * 1_048_576 - 200)
  await put('z', largest)
  await put('zz', '')
  await vi.waitFor(() => expect(disk.names.some((name) => name.startsWith('checkpoint'))).toBe(true))
  await session.close()
  const reopened = await openSimulated(disk, 1_000_000)
  const document = await reopened.get('settings', 'z')
  expect(document?.value === largest).toBe(true)
  await reopened.close()
})

test('a frame has several items only up to its limit', async () => {
  const disk = new SimulatedDisk(new Prng(1))
  const sizes = [2_500, FRAME_BYTES, 2_500, 4_000, 2_500, 3 * FRAME_BYTES, 10]
  await writeCheckpoint(disk, snapshotOf(sizes), () => false)
  const frames = frameLengths(disk.contentOf(NAME))
  for (const length of frames) {
    if (length > FRAME_BYTES) expect(sizes.some((size) => Math.abs(length - size) < 100)).toBe(true)
  }
  const { state, close } = await openCheckpoint(disk, 1)
  const stored = await Promise.all(sizes.map((_, i) => state.catalog.get('settings', `k${i}`)))
  await close()
  expect(stored.map((document) => document?.value)).toEqual(sizes.map((size) => 'x'.repeat(size)))
})

test('does not write a checkpoint with a frame that is too large to read', async () => {
  const disk = new SimulatedDisk(new Prng(1))
  const writing = writeCheckpoint(disk, snapshotOf([10, 5_000]), () => false, 4_096)
  await expect(writing).rejects.toThrow(/a checkpoint frame has 50\d\d bytes; the limit is 4096/)
  expect(disk.names).toEqual([])
})

test('a length beyond the end of the file is damage and allocates no memory', async () => {
  const disk = new SimulatedDisk(new Prng(1))
  await writeCheckpoint(disk, snapshotOf([10]), () => false)
  const content = Buffer.from(disk.contentOf(NAME))
  content.writeUInt32LE(900 * 1_048_576, FILE_HEADER_BYTES + 4)
  const damaged = new SimulatedDisk(new Prng(1), new Map([[NAME, content]]))
  const { state, close } = await openCheckpoint(damaged, 1)
  await expect(state.catalog.get('settings', 'k0')).rejects.toMatchObject({ kind: 'corrupt' })
  await close()
})

test('a file whose size cannot be read is closed', async () => {
  const disk = new SimulatedDisk(new Prng(1), new Map([[NAME, Buffer.alloc(100)]]))
  const calls: string[] = []
  const files = hookedFiles(disk, (operation) => {
    calls.push(operation)
    if (operation === 'size') throw systemError('EIO')
  })
  await expect(SequentialReader.open(files, NAME)).rejects.toMatchObject({ kind: 'io' })
  expect(calls).toEqual(['open', 'size', 'close'])
})

function snapshotOf(sizes: readonly number[]): Snapshot {
  const documents = sizes.map((size, i) => ({
    key: `k${i}`,
    document: { version: i + 1, text: JSON.stringify('x'.repeat(size)) },
  }))
  const collections = [{ collection: 'settings' as const, documents: [documents] }]
  return { journal: 1, nextLog: 1, nextVersion: sizes.length + 1, segments: [], collections, logs: [] }
}

function frameLengths(content: Buffer): number[] {
  const lengths: number[] = []
  for (
    let offset = FILE_HEADER_BYTES;
    offset < content.length;
    offset += FRAME_HEADER_BYTES + lengths.at(-1)!
  ) {
    lengths.push(content.readUInt32LE(offset + 4))
  }
  return lengths
}
