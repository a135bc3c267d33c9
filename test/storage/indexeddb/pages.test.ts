import 'fake-indexeddb/auto'
import { openDB } from 'idb'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import {
  type AppendSpec,
  FAR,
  LogWriter,
  NOW,
  recordsOfBlocks,
  seqNumsOf,
  WHOLE_LOG,
} from '../../../adapters/conformance/log-writer.ts'
import { checkRead } from '../../../adapters/conformance/model.ts'
import { reclaimAll } from '../../../adapters/conformance/reclaim.ts'
import { indexedDb } from '../../../adapters/storage/indexeddb/index.ts'

import type { PageKey, PageRow, Schema } from '../../../adapters/storage/indexeddb/schema.ts'
import { open } from '../../../src/index.ts'
import { systemClock } from '../../../src/runtime/clock.ts'

/** A batch of about 270 KiB. */
const BATCH: AppendSpec = { count: 1_000, bodyBytes: 256 }
const KEY: PageKey = ['a', 1_000]
const CORRUPT = { kind: 'corrupt', nothingWritten: true }
const PART_BYTES = 60 * 1024

let databases = 0

async function openStorage() {
  const name = `pieces-${databases++}`
  const session = await indexedDb(name).open({ clock: systemClock, onLogChanged: () => {} })
  const db = await openDB<Schema>(name)
  onTestFinished(async () => {
    db.close()
    await session.close()
  })
  const writer = await LogWriter.create(session, 'a')
  return {
    session,
    db,
    writer,
    async changePage(change: (row: PageRow) => Partial<PageRow>): Promise<void> {
      const row = (await db.get('pages', KEY))!
      await db.put('pages', { ...row, ...change(row) }, KEY)
    },
  }
}

/** Rewrites a page to the format before pieces, with parts cut at any byte. */
async function asBefore({ db }: Awaited<ReturnType<typeof openStorage>>): Promise<void> {
  const parts = await db.getAll('parts')
  const data = new Uint8Array(await new Blob(parts as Uint8Array<ArrayBuffer>[]).arrayBuffer())
  await db.clear('parts')
  const count = Math.ceil(data.length / PART_BYTES)
  for (let part = 0; part < count; part++) {
    await db.put('parts', data.slice(part * PART_BYTES, (part + 1) * PART_BYTES), [...KEY, part])
  }
  const { pieces: _, ...row } = (await db.get('pages', KEY))!
  await db.put('pages', { ...row, parts: count }, KEY)
}

/** The parts that are requested during `work`. */
async function partsAskedFor(work: () => Promise<unknown>): Promise<unknown[]> {
  const get = vi.spyOn(IDBObjectStore.prototype, 'get')
  try {
    await work()
    const keys = get.mock.calls.map(([key]) => key)
    return keys.filter((key) => Array.isArray(key) && key.length === 3).map((key) => (key as number[])[2])
  } finally {
    get.mockRestore()
  }
}

describe('a large batch', () => {
  it('is stored in parts that are blocks, and read as these blocks', async () => {
    const { session, db, writer } = await openStorage()
    await writer.append(BATCH)
    const row = (await db.get('pages', KEY))!
    expect(row.parts).toBe(5)
    expect(row.numbers).toHaveLength(7)
    const blocks = await session.read('a', WHOLE_LOG)
    expect(blocks).toHaveLength(5)
    expect(blocks.map(({ data }) => data)).toEqual(await db.getAll('parts'))
    for (const { data } of blocks) expect(data.length).toBeLessThanOrEqual(PART_BYTES)
    checkRead(writer.written, WHOLE_LOG, blocks)
  })

  it('is read as one block with `unsplit`', async () => {
    const { session, writer } = await openStorage()
    const appended = await writer.append(BATCH)
    expect(await session.read('a', { ...WHOLE_LOG, unsplit: true })).toEqual([appended])
    const middle = { ...WHOLE_LOG, from: { seqNum: 700 }, recordsMax: 1, unsplit: true }
    expect(await session.read('a', middle)).toEqual([appended])
  })

  it.each<[string, object]>([
    ['a sequence number', { seqNum: 500 }],
    ['a timestamp', { timestamp: NOW + 500 }],
  ])('a read of some records from %s loads only the part that contains them', async (_, from) => {
    const { session, writer } = await openStorage()
    await writer.append(BATCH)
    const range = { ...WHOLE_LOG, from: from as { seqNum: number }, recordsMax: 10 }
    expect(await partsAskedFor(() => session.read('a', range))).toEqual([2])
    expect(seqNumsOf(await session.read('a', range))).toContain(500)
    expect(await partsAskedFor(() => session.read('a', { ...range, unsplit: true }))).toEqual([0, 1, 2, 3, 4])
  })

  it.each<[string, AppendSpec, number]>([
    ['with a record that is larger than a part', { count: 3, bodyBytes: 100_000 }, 5],
    ['large enough for a file', { count: 1_000, bodyBytes: 400 }, 1],
    ['that one part holds', { count: 100, bodyBytes: 500 }, 1],
  ])('%s is stored as one block', async (_, spec, parts) => {
    const { session, db, writer } = await openStorage()
    const appended = await writer.append(spec)
    const [row] = await db.getAll('pages')
    expect(row).toMatchObject({ parts })
    expect(row).not.toHaveProperty('pieces')
    expect(await session.read('a', WHOLE_LOG)).toEqual([appended])
  })

  it('in the format before pieces is read and reclaimed', async () => {
    const storage = await openStorage()
    const { session, db, writer } = storage
    const appended = await writer.append({ ...BATCH, expiresAt: NOW })
    await asBefore(storage)
    expect(await session.read('a', WHOLE_LOG)).toEqual([appended])
    expect(await session.read('a', { ...WHOLE_LOG, from: { timestamp: NOW + 900 }, bytesMax: 1 })).toEqual([
      appended,
    ])
    await reclaimAll(session, { now: NOW, trimmedBefore: 0, blocksMax: 1 })
    expect(await db.count('parts')).toBe(0)
    expect(await session.measure(['a'])).toEqual([0])
  })

  it('is kept until all of it is trimmed, and is then reclaimed completely', async () => {
    const { session, db, writer } = await openStorage()
    await writer.append(BATCH)
    await writer.append({ trimPoint: 700, trimmedAt: NOW, expiresAt: FAR })
    const limits = { now: 0, trimmedBefore: NOW, blocksMax: 1 }
    for (let time = 0; time < 2; time++) expect(await reclaimAll(session, limits)).toEqual([])
    expect(await db.count('parts')).toBe(5)
    checkRead(writer.written, WHOLE_LOG, await session.read('a', WHOLE_LOG))
    await writer.append({ trimPoint: 1_000, trimmedAt: NOW, expiresAt: FAR })
    expect(await reclaimAll(session, limits)).toEqual(['a'])
    expect([await db.count('parts'), await db.count('pages')]).toEqual([0, 0])
    const left = recordsOfBlocks(await session.read('a', WHOLE_LOG))
    expect(left.map(({ seqNum }) => seqNum)).toEqual([1_000, 1_001])
  })
})

it('a follower receives the batch of another engine undivided', async () => {
  const storage = () => indexedDb('followed')
  const [writing, reading] = [await open({ storage: storage() }), await open({ storage: storage() })]
  onTestFinished(() => Promise.all([writing.close(), reading.close()]).then(() => {}))
  const stream = writing.basin('basin').stream('stream')
  await stream.append('first')
  const session = (await reading
    .basin('basin')
    .stream('stream')
    .openCursor({ seqNum: 0 }, { heartbeats: true }))!
  expect((await session.next())?.kind).toBe('batch')
  // Sent when it has caught up.
  expect((await session.next())?.kind).toBe('heartbeat')
  const following = session.next()
  const { end } = await stream.append(Array.from({ length: 1_000 }, () => 'x'.repeat(256)))
  expect(await following).toMatchObject({
    kind: 'batch',
    batch: { count: 1_000, lastSeqNum: end.seqNum - 1 },
  })
})

describe('damaged pieces', () => {
  it.each<[string, (row: PageRow) => Partial<PageRow>]>([
    ['a missing last piece', ({ pieces }) => ({ pieces: pieces!.slice(0, -7) })],
    ['a missing first piece', ({ pieces }) => ({ pieces: pieces!.slice(7) })],
    ['half a piece', ({ pieces }) => ({ pieces: pieces!.slice(3) })],
    ['no pieces', () => ({ pieces: new Float64Array(0) })],
    ['no array', () => ({ pieces: null as never })],
    ['a wrong end', ({ pieces }) => ({ pieces: pieces!.with(6, pieces![6]! - 1) })],
    ['overlapping pieces', ({ pieces }) => ({ pieces: pieces!.with(7, 0) })],
    ['NaN as a size', ({ pieces }) => ({ pieces: pieces!.with(4, Number.NaN) })],
    ['a missing part', ({ parts }) => ({ parts: parts - 1 })],
  ])('reject reads: %s', async (_, damage) => {
    const { session, writer, changePage } = await openStorage()
    await writer.append(BATCH)
    await changePage(damage)
    await expect(session.read('a', WHOLE_LOG)).rejects.toMatchObject(CORRUPT)
  })

  it.each<[string, (part: Uint8Array) => Uint8Array | undefined]>([
    ['is missing', () => undefined],
    ['is too short', (part) => part.slice(1)],
    ['is too long', (part) => new Uint8Array([...part, 0])],
  ])('a part that %s rejects the reads that need it, split or not', async (_, damage) => {
    const { session, db, writer } = await openStorage()
    await writer.append(BATCH)
    const part = damage((await db.get('parts', [...KEY, 2]))!)
    if (part === undefined) await db.delete('parts', [...KEY, 2])
    else await db.put('parts', part, [...KEY, 2])
    await expect(session.read('a', WHOLE_LOG)).rejects.toMatchObject(CORRUPT)
    await expect(session.read('a', { ...WHOLE_LOG, unsplit: true })).rejects.toMatchObject(CORRUPT)
    const [first] = await session.read('a', { ...WHOLE_LOG, bytesMax: 1 })
    expect(first?.firstSeqNum).toBe(0)
  })
})
