import { describe, expect, test } from 'vitest'
import { LogWriter, NOW } from '../../../../adapters/conformance/log-writer.ts'
import { ByteWriter } from '../../../../adapters/storage/filesystem/files/bytes.ts'
import { fileName, parseFileName } from '../../../../adapters/storage/filesystem/files/file-header.ts'
import type { File, OpenMode } from '../../../../adapters/storage/filesystem/files/files.ts'
import { beginFrame, endFrame } from '../../../../adapters/storage/filesystem/files/frame.ts'
import { writeCheckpoint } from '../../../../adapters/storage/filesystem/state/checkpoint.ts'
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
import { emptyHead } from '../../../../src/storage/heads.ts'
import { Gate, hookedFiles, systemError } from '../hooked-files.ts'
import { type Loss, SimulatedDisk } from '../simulated-disk.ts'
import { openSimulated } from '../workload.ts'

const LARGE = 1e9
const NAME = fileName('checkpoint', 1)
const STREAMS = 100_000
const LOSSES: readonly Loss[] = ['nothing', 'everything', 'some']
const ALL = { prefix: '', after: '', limit: 1_000_000 }

const keyOf = (i: number) => `k${String(i).padStart(6, '0')}`

/** A disk with a checkpoint of so many documents and logs, and an empty journal. */
async function filledDisk(nextLog = STREAMS + 1): Promise<SimulatedDisk> {
  const disk = new SimulatedDisk(new Prng(1))
  const numbers = Array.from({ length: STREAMS }, (_, i) => i + 1)
  const documents = numbers.map((i) => ({ key: keyOf(i), document: { version: i, text: `"${i}"` } }))
  const logs = numbers.map((number) => ({
    number,
    id: `log-${number}`,
    head: emptyHead(1, number),
    runs: [],
  }))
  const collections = [{ collection: 'settings' as const, documents: [documents] }]
  const counters = { nextLog, nextVersion: STREAMS + 1 }
  await writeCheckpoint(
    disk,
    { journal: 1, ...counters, segments: [], collections, logs: [logs] },
    () => false,
  )
  const other = new SimulatedDisk(new Prng(2))
  const session = await openSimulated(other, LARGE)
  await session.commit([{ kind: 'put', collection: 'usage', key: 'a', value: 1 }])
  await session.close()
  const journal = fileName('journal', 1)
  return new SimulatedDisk(
    new Prng(1),
    new Map([
      [NAME, disk.contentOf(NAME)],
      [journal, other.contentOf(journal)],
    ]),
  )
}

describe('a checkpoint of many documents and logs', () => {
  test('is not read by an opening, and in small parts by the calls that need it', async () => {
    const disk = await filledDisk()
    let bytes = 0
    const session = await openSimulated(
      { ...hookedFiles(disk, () => {}), open: (name, mode) => counted(name, mode) },
      LARGE,
    )
    async function counted(name: string, mode: 'create' | 'read' | 'update') {
      const file = await disk.open(name, mode)
      const read = async (buffer: Uint8Array, position: number) => {
        const count = await file.read(buffer, position)
        if (name === NAME) bytes += count
        return count
      }
      const others = { size: () => file.size(), close: () => file.close(), datasync: () => file.datasync() }
      return {
        ...others,
        read,
        write: (data: Uint8Array, position: number) => file.write(data, position),
        truncate: (length: number) => file.truncate(length),
        isLinked: () => file.isLinked(),
        isNamed: (named: string) => file.isNamed(named),
      }
    }
    const { length } = disk.contentOf(NAME)
    expect(length).toBeGreaterThan(4_000_000)
    const before = bytes
    expect(before).toBeLessThan(0.6 * length)
    expect(await session.get('settings', keyOf(7_777))).toMatchObject({ value: '7777', version: 7_777 })
    expect((await session.head('log-7777'))?.appendedAt).toBe(7_777)
    expect(await session.head('log-0')).toBeUndefined()
    const page = await session.list('settings', { prefix: 'k01', after: keyOf(12_345), limit: 1_000 })
    expect(page.map(({ key }) => key)).toEqual(Array.from({ length: 1_000 }, (_, i) => keyOf(12_346 + i)))
    expect(bytes - before).toBeLessThan(100_000)
    await session.close()
  })

  test('is read once for the calls that need the same part at the same time', async () => {
    let reads = 0
    const files = hookedFiles(await filledDisk(), (operation, name) => {
      if (operation === 'read' && name === NAME) reads++
    })
    const session = await openSimulated(files, LARGE)
    const before = reads
    const keys = Array.from({ length: 1_000 }, (_, i) => keyOf(i + 1))
    await session.commit(keys.map((key) => ({ kind: 'put', collection: 'settings', key, value: 1 })))
    expect(reads - before).toBeLessThan(10)
    await session.close()
  })

  test('returns the right document and log to concurrent calls in random order', async () => {
    const session = await openSimulated(await filledDisk(), LARGE)
    const prng = new Prng(3)
    const numbers = Array.from({ length: 2_000 }, () => 1 + prng.below(STREAMS))
    const found = await Promise.all(
      numbers.map(async (i) => {
        const [document, head] = await Promise.all([
          session.get('settings', keyOf(i)),
          session.head(`log-${i}`),
        ])
        return [document?.key, document?.value, document?.version, head?.appendedAt]
      }),
    )
    expect(found).toEqual(numbers.map((i) => [keyOf(i), `${i}`, i, i]))
    expect(await session.get('settings', `${keyOf(7)}-`)).toBeUndefined()
    expect(await session.get('settings', 'a')).toBeUndefined()
    expect(await session.get('settings', 'z')).toBeUndefined()
    await session.close()
  })

  test('is read once or twice per page by concurrent calls that need the same pages', async () => {
    let reads = 0
    const files = hookedFiles(await filledDisk(), (operation, name) => {
      if (operation === 'read' && name === NAME) reads++
    })
    const session = await openSimulated(files, LARGE)
    const before = reads
    const prng = new Prng(4)
    const keys = Array.from({ length: 1_000 }, () => keyOf(50_000 + prng.below(500)))
    const found = await Promise.all(keys.map((key) => session.get('settings', key)))
    expect(found.map((document) => document?.key)).toEqual(keys)
    expect(reads - before).toBeLessThan(20)
    await session.close()
  })

  test('is read once or twice per page by look-ups of neighbouring keys', async () => {
    let reads = 0
    const files = hookedFiles(await filledDisk(), (operation, name) => {
      if (operation === 'read' && name === NAME) reads++
    })
    const session = await openSimulated(files, LARGE)
    const before = reads
    for (let i = 1; i <= 2_000; i++) {
      expect((await session.get('settings', keyOf(i)))?.version).toBe(i)
    }
    expect(reads - before).toBeLessThan(20)
    await session.close()
  })

  test('is read in a few calls of the system by a list', async () => {
    let reads = 0
    const files = hookedFiles(await filledDisk(), (operation, name) => {
      if (operation === 'read' && name === NAME) reads++
    })
    const session = await openSimulated(files, LARGE)
    const before = reads
    const list = (i: number) => session.list('settings', { prefix: 'k', after: keyOf(i), limit: 2_000 })
    const pages = await Promise.all([list(5_000), list(5_000)])
    for (const page of pages) {
      expect(page.map(({ value }) => value)).toEqual(Array.from({ length: 2_000 }, (_, i) => `${5_001 + i}`))
    }
    expect(reads - before).toBeLessThan(4)
    const many = await session.list('settings', { prefix: 'k', after: keyOf(20_000), limit: 50_000 })
    expect(many.map(({ key }) => key)).toEqual(Array.from({ length: 50_000 }, (_, i) => keyOf(20_001 + i)))
    await session.close()
  })

  test('fails a list that needs a damaged part, but not one that ends before it', async () => {
    const disk = await filledDisk()
    const content = Buffer.from(disk.contentOf(NAME))
    const place = content.indexOf(keyOf(7_777))
    content[place]! ^= 1
    const journal = fileName('journal', 1)
    const contents = new Map([
      [NAME, content],
      [journal, disk.contentOf(journal)],
    ])
    const session = await openSimulated(new SimulatedDisk(new Prng(1), contents), LARGE)
    const list = (after: number, limit: number) =>
      session.list('settings', { prefix: 'k', after: keyOf(after), limit })
    await expect(list(7_000, 1_000)).rejects.toMatchObject({
      kind: 'corrupt',
      message: expect.stringContaining(NAME),
    })
    expect(await list(5_000, 2_000)).toHaveLength(2_000)
    expect(await list(8_500, 1_000)).toHaveLength(1_000)
    await session.close()
  })

  test('fails only the calls that need a damaged part', async () => {
    const disk = await filledDisk()
    const content = Buffer.from(disk.contentOf(NAME))
    content[200_000]! ^= 1
    const journal = fileName('journal', 1)
    const contents = new Map([
      [NAME, content],
      [journal, disk.contentOf(journal)],
    ])
    const session = await openSimulated(new SimulatedDisk(new Prng(1), contents), LARGE)
    const failures: number[] = []
    for (let i = 1; i <= STREAMS; i += 50) {
      const error = await session.get('settings', keyOf(i)).then(
        () => undefined,
        (failure: unknown) => failure,
      )
      if (error === undefined) continue
      expect(error).toMatchObject({ kind: 'corrupt', message: expect.stringContaining(NAME) })
      failures.push(i)
    }
    expect(failures.length).toBeGreaterThan(0)
    expect(failures.length).toBeLessThan(20)
    const damagedKey = keyOf(failures[0]!)
    const put = { kind: 'put', collection: 'settings', key: damagedKey, value: 1, expect: null } as const
    await expect(session.commit([put])).rejects.toMatchObject({ kind: 'corrupt', nothingWritten: true })
    await session.commit([{ ...put, key: 'other' }])
    await session.close()
  })
})

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
  const crashed = await openSimulated(disk.crashedAfter(disk.length, 'everything', new Prng(2)), LARGE)
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

/** Returns the files of a disk, with the index of the checkpoint replaced. */
function withIndex(disk: SimulatedDisk, fill: (index: CheckpointIndex) => void): Map<string, Buffer> {
  const content = Buffer.from(disk.contentOf(NAME))
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
  const journal = fileName('journal', 1)
  return new Map([
    [NAME, Buffer.concat([content.subarray(0, indexStart), writer.bytes])],
    [journal, disk.contentOf(journal)],
  ])
}

test.each([0, 3])('an opening rejects an index with %s buckets of hashes', async (count) => {
  const contents = withIndex(await filledDisk(), (index) => {
    for (let i = 0; i < count; i++) index.logs.buckets.add(EMPTY_BUCKET)
  })
  await expect(openSimulated(new SimulatedDisk(new Prng(1), contents), LARGE)).rejects.toMatchObject({
    kind: 'corrupt',
    message: expect.stringMatching(`${NAME}.*the index has ${count} buckets`),
  })
})

test.each([
  ['behind the end of the file', 2 ** 40, 100],
  ['longer than memory', 48, 2 ** 52],
  ['longer than the file', 48, 2 ** 29],
])('a frame that is %s by the index is damage, and no memory is taken for it', async (_, offset, bytes) => {
  const disk = await filledDisk()
  const contents = withIndex(disk, (index) => {
    index.addDocuments('settings', { offset, bytes }, Buffer.from('a'))
    index.logs.buckets.add(EMPTY_BUCKET)
  })
  let longest = 0
  const files = hookedFiles(new SimulatedDisk(new Prng(1), contents), () => {})
  const session = await openSimulated({ ...files, open: async (name, mode) => measured(name, mode) }, LARGE)
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
    message: expect.stringContaining(`${NAME} is damaged at offset ${offset}`),
  })
  expect(longest).toBeLessThan(2 * contents.get(NAME)!.length)
  await session.close()
})

test('many changes are written to a checkpoint, however many logs were deleted before', async () => {
  const disk = await filledDisk(10_000_000)
  const session = await openSimulated(disk, LARGE)
  const changes = Array.from({ length: 65_536 }, (_, i) => {
    return { kind: 'put', collection: 'settings', key: keyOf(i), value: 1 } as const
  })
  await session.commit(changes)
  const hasRolled = () =>
    disk.names.some((name) => parseFileName(name)?.kind === 'checkpoint' && name !== NAME)
  for (let i = 0; i < 1_000 && !hasRolled(); i++) await session.get('settings', keyOf(i))
  await session.reclaim({ now: 0, trimmedBefore: 0, blocksMax: 1 })
  expect(hasRolled()).toBe(true)
  await session.close()
})
