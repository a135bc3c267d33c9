import { describe, expect, test } from 'vitest'
import { LogWriter, NOW } from '../../../../adapters/conformance/log-writer.ts'
import { ByteWriter } from '../../../../adapters/storage/filesystem/files/bytes.ts'
import { parseFileName } from '../../../../adapters/storage/filesystem/files/file-header.ts'
import type { File, OpenMode } from '../../../../adapters/storage/filesystem/files/files.ts'
import { beginFrame, endFrame } from '../../../../adapters/storage/filesystem/files/frame.ts'
import {
  CheckpointIndex,
  readTrailer,
  TRAILER_BYTES,
  writeTrailer,
} from '../../../../adapters/storage/filesystem/state/checkpoint-index.ts'
import { EMPTY_BUCKET } from '../../../../adapters/storage/filesystem/state/stored-pages.ts'
import { compareUtf8 } from '../../../../src/model/bytes.ts'
import { Prng } from '../../../../src/runtime/prng.ts'
import type { StorageSession } from '../../../../src/storage/contract.ts'
import { Gate, hookedFiles, systemError } from '../hooked-files.ts'
import { type Loss, SimulatedDisk } from '../simulated-disk.ts'
import { openSimulated } from '../workload.ts'
import { CHECKPOINT, diskWith, filledDisk, keyOf, ROLL_BYTES } from './filled-disk.ts'

const LOSSES: readonly Loss[] = ['nothing', 'everything', 'some']
const ALL = { prefix: '', after: '', limit: 1_000_000 }

/** Random changes of documents, and what they are after each of them, by the length of the disk's history. */
async function changed(disk: SimulatedDisk, session: StorageSession, prng: Prng, count: number) {
  const model = new Map<string, number>()
  const states: { readonly length: number; readonly documents: ReadonlyMap<string, number> }[] = []
  for (let i = 0; i < count; i++) {
    const key = keyOf(prng.below(40))
    if (prng.chance(0.3)) {
      model.delete(key)
      await session.commit([{ kind: 'delete', collection: 'settings', key }])
    } else {
      const expected = await session.get('settings', key)
      expect(expected?.value).toBe(model.get(key))
      model.set(key, i)
      const expect_ = expected?.version ?? null
      await session.commit([{ kind: 'put', collection: 'settings', key, value: i, expect: expect_ }])
    }
    states.push({ length: disk.length, documents: new Map(model) })
    expect(await documentsOf(session)).toEqual(sorted(model))
  }
  return states
}

async function documentsOf(session: StorageSession) {
  return (await session.list('settings', ALL)).map(({ key, value }) => [key, value])
}

function sorted(model: ReadonlyMap<string, number>) {
  return [...model].sort(([a], [b]) => compareUtf8(a, b))
}

describe.each([1, 2, 3])('documents that change while checkpoints are written (seed %i)', (seed) => {
  test('are as they were at each point of a crash', async () => {
    const prng = new Prng(seed)
    const disk = new SimulatedDisk(prng)
    const session = await openSimulated(disk, 400)
    const states = await changed(disk, session, prng, 150)
    expect(Number(disk.names.find((name) => name.startsWith('checkpoint'))?.slice(-10))).toBeGreaterThan(5)
    for (const [i, { length, documents }] of states.entries()) {
      const next = states[i + 1]?.length ?? length
      const at = length + prng.below(next - length + 1)
      const reopened = await openSimulated(disk.crashedAfter(at, prng.pick(LOSSES), prng), 400)
      const after = sorted(states[i + 1]?.documents ?? documents)
      expect([sorted(documents), after]).toContainEqual(await documentsOf(reopened))
      await reopened.close()
    }
    await session.close()
  })
})

test.each([
  ['cannot be opened', 'open'],
  ['cannot be read', 'read'],
] as const)('a new checkpoint that %s is given up, and the next one is used', async (_, operation) => {
  const disk = new SimulatedDisk(new Prng(1))
  let failures = 0
  const files = hookedFiles(disk, (called, name, mode) => {
    const isHit = called === operation && mode === 'read' && parseFileName(name)?.kind === 'checkpoint'
    if (!isHit || failures > 0) return
    failures++
    throw systemError('EMFILE')
  })
  const session = await openSimulated(files, 2_000)
  const put = (i: number) =>
    session.commit([{ kind: 'put', collection: 'settings', key: keyOf(i % 50), value: i }])
  let i = 0
  for (; failures === 0; i++) await put(i)
  const crashed = await openSimulated(disk.crashedAfter(disk.length, 'everything', new Prng(2)), ROLL_BYTES)
  expect((await documentsOf(crashed)).length).toBe(Math.min(i, 50))
  await crashed.close()
  const hasCheckpoint = () => disk.names.some((name) => parseFileName(name)?.kind === 'checkpoint')
  for (const end = i + 2_000; i < end && !hasCheckpoint(); i++) await put(i)
  expect(hasCheckpoint()).toBe(true)
  expect((await session.list('settings', ALL)).length).toBe(50)
  await session.close()
})

test('a read that began in a checkpoint that was replaced meanwhile begins again', async () => {
  const disk = new SimulatedDisk(new Prng(1))
  const first = await openSimulated(disk, 300)
  const put = (session: StorageSession, value: number) =>
    session.commit([{ kind: 'put', collection: 'settings', key: 'a', value }])
  const checkpoints = () => disk.names.filter((name) => parseFileName(name)?.kind === 'checkpoint')
  const { head } = await LogWriter.create(first, 'a')
  for (let i = 0; checkpoints().length === 0; i++) await put(first, i)
  await first.close()
  const [before] = checkpoints()
  const gate = new Gate((operation, name) => operation === 'read' && name === before)
  const session = await openSimulated(hookedFiles(disk, gate.hook), 300)
  const arrived = gate.arm()
  const reading = session.head('a')
  await arrived
  const writer = new LogWriter(session, 'a', head)
  await writer.append()
  for (let i = 0; i < 50; i++) await put(session, i)
  expect(checkpoints().at(-1)).not.toBe(before)
  gate.open()
  expect(await reading).toEqual(writer.head)
  await session.close()
})

test('a trim that ends within a block is examined once, however many checkpoints follow', async () => {
  const disk = new SimulatedDisk(new Prng(1))
  let reads = 0
  const files = hookedFiles(disk, (operation, name) => {
    if (operation === 'read' && parseFileName(name)?.kind === 'segment') reads++
  })
  const session = await openSimulated(files, 2_000)
  const checkpoint = () => disk.names.findLast((name) => parseFileName(name)?.kind === 'checkpoint')
  const awaitRoll = async () => {
    const before = checkpoint()
    for (let i = 0; i < 2_000 && checkpoint() === before; i++) {
      await session.commit([{ kind: 'put', collection: 'settings', key: 'a', value: i }])
    }
    expect(checkpoint()).not.toBe(before)
  }
  const reclaim = async () => {
    const before = reads
    const limits = { now: NOW, trimmedBefore: NOW, blocksMax: 100 }
    expect(await session.reclaim(limits)).toEqual({ more: false, logIds: [] })
    return reads - before
  }
  const writer = await LogWriter.create(session, 'a')
  await writer.append({ count: 10 })
  await writer.append({ trimPoint: 5 })
  await awaitRoll()
  expect(await reclaim()).toBeGreaterThan(0)
  await awaitRoll()
  await awaitRoll()
  expect(await reclaim()).toBe(0)
  await session.close()
})

/** Returns a copy of a disk, with the index of the checkpoint replaced. */
function withIndex(disk: SimulatedDisk, fill: (index: CheckpointIndex) => void): SimulatedDisk {
  const content = Buffer.from(disk.contentOf(CHECKPOINT))
  const salt = content.readUInt32LE(24)
  const index = new CheckpointIndex()
  fill(index)
  const { index: indexStart, ...trailer } = readTrailer(content.subarray(-TRAILER_BYTES))
  const writer = new ByteWriter()
  let start = beginFrame(writer)
  writer.byte('I'.charCodeAt(0))
  for (const write of index.entries()) write(writer)
  endFrame(writer, start, salt)
  start = beginFrame(writer)
  writer.byte('T'.charCodeAt(0))
  writeTrailer(writer, { ...trailer, index: indexStart })
  endFrame(writer, start, salt)
  return diskWith(Buffer.concat([content.subarray(0, indexStart), writer.bytes]), disk)
}

test.each([0, 3])('an opening rejects an index with %s buckets of hashes', async (count) => {
  const damaged = withIndex(await filledDisk(), (index) => {
    for (let i = 0; i < count; i++) index.logs.buckets.add(EMPTY_BUCKET)
  })
  await expect(openSimulated(damaged, ROLL_BYTES)).rejects.toMatchObject({
    kind: 'corrupt',
    message: expect.stringMatching(`${CHECKPOINT}.*the index has ${count} buckets`),
  })
})

test.each([
  ['behind the end of the file', 2 ** 40, 100],
  ['longer than memory', 48, 2 ** 52],
  ['longer than the file', 48, 2 ** 29],
])('a frame that is %s by the index is damage, and no memory is taken for it', async (_, offset, bytes) => {
  const disk = await filledDisk()
  const damaged = withIndex(disk, (index) => {
    index.addDocuments('settings', { offset, bytes }, Buffer.from('a'))
    index.logs.buckets.add(EMPTY_BUCKET)
  })
  let longest = 0
  const files = hookedFiles(damaged, () => {})
  const session = await openSimulated(
    { ...files, open: async (name, mode) => measured(name, mode) },
    ROLL_BYTES,
  )
  async function measured(name: string, mode: OpenMode): Promise<File> {
    const file = await files.open(name, mode)
    return {
      ...file,
      read: (buffer, position) => {
        longest = Math.max(longest, buffer.length)
        return file.read(buffer, position)
      },
    }
  }
  await expect(session.get('settings', 'b')).rejects.toMatchObject({
    kind: 'corrupt',
    message: expect.stringContaining(`${CHECKPOINT} is damaged at offset ${offset}`),
  })
  expect(longest).toBeLessThan(2 * damaged.contentOf(CHECKPOINT).length)
  await session.close()
})

test('many changes are written to a checkpoint, however many logs were deleted before', async () => {
  const disk = await filledDisk(10_000_000)
  const session = await openSimulated(disk, ROLL_BYTES)
  const changes = Array.from({ length: 65_536 }, (_, i) => {
    return { kind: 'put', collection: 'settings', key: keyOf(i), value: 1 } as const
  })
  await session.commit(changes)
  const hasRolled = () =>
    disk.names.some((name) => parseFileName(name)?.kind === 'checkpoint' && name !== CHECKPOINT)
  for (let i = 0; i < 1_000 && !hasRolled(); i++) await session.get('settings', keyOf(i))
  await session.reclaim({ now: 0, trimmedBefore: 0, blocksMax: 1 })
  expect(hasRolled()).toBe(true)
  await session.close()
})
