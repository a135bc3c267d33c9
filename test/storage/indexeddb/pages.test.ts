import 'fake-indexeddb/auto'
import { openDB } from 'idb'
import { describe, expect, it, onTestFinished } from 'vitest'
import {
  type AppendSpec,
  FAR,
  LogWriter,
  NOW,
  recordsOfBlocks,
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
