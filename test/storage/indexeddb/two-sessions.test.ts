import 'fake-indexeddb/auto'
import { openDB } from 'idb'
import { describe, expect, it, onTestFinished } from 'vitest'
import { conflicts } from '../../../adapters/conformance/assertions.ts'
import { FAR, NOW, range, seqNumsOf, WHOLE_LOG } from '../../../adapters/conformance/blocks.ts'
import { LogWriter } from '../../../adapters/conformance/log-writer.ts'
import { indexedDb } from '../../../adapters/storage/indexeddb/index.ts'
import type { Schema } from '../../../adapters/storage/indexeddb/schema.ts'
import { open } from '../../../src/index.ts'
import { systemClock } from '../../../src/runtime/clock.ts'
import type { StorageSession } from '../../../src/storage/contract.ts'
import { tailRowsOf } from './tail-rows.ts'

let databases = 0

async function openTwo() {
  const name = `small-${databases++}`
  const open = async () => {
    const session = await indexedDb(name).open({ clock: systemClock, onLogChanged: () => {} })
    onTestFinished(() => session.close())
    return session
  }
  const sessions: [StorageSession, StorageSession] = [await open(), await open()]
  const db = await openDB<Schema>(name)
  onTestFinished(() => db.close())
  return { sessions, db }
}

async function records(session: StorageSession, from = 0): Promise<number[]> {
  const blocks = await session.read('a', { ...WHOLE_LOG, from: { seqNum: from } })
  return seqNumsOf(blocks).filter((seqNum) => seqNum >= from)
}

describe('two sessions that have cached a log', () => {
  it('conflict if both append, however each of them writes', async () => {
    const { sessions } = await openTwo()
    const [first, second] = sessions
    let ours = await LogWriter.create(first, 'a')
    for (const spec of [{}, { bodyBytes: 3_000 }, { fencingToken: 'x' }, { count: 20 }, {}, {}]) {
      await ours.append()
      const theirs = new LogWriter(second, 'a', ours.head)
      await theirs.append(spec)
      await conflicts(ours.append(), 'an append behind another')
      expect(await first.head('a')).toEqual(theirs.head)
      ours = new LogWriter(first, 'a', theirs.head)
    }
    await ours.append()
    expect(await second.head('a')).toEqual(ours.head)
    expect(await records(second)).toEqual(range(0, ours.head.tail.seqNum))
  })

  it('conflict if one has replaced the log row, and leave no stale tail row', async () => {
    const { sessions, db } = await openTwo()
    const [first, second] = sessions
    const writer = await LogWriter.create(first, 'a')
    await writer.append()
    await second.commit([{ kind: 'set-epoch', logId: 'a', epoch: 2 }])
    const replaced = await second.head('a')
    await conflicts(writer.append(), 'an append under the epoch before')
    const { revision } = (await db.get('logs', 'a'))!
    expect((await tailRowsOf(db, 'a')).map(({ key }) => key)).toEqual([['a', 0, revision]])
    expect(await second.head('a')).toEqual(replaced)
    expect(replaced?.epoch).toBe(2)
    expect(await records(first)).toEqual([0])
  })

  it('do not conflict if one has replaced the log row without an append', async () => {
    const { sessions, db } = await openTwo()
    const [first, second] = sessions
    const writer = await LogWriter.create(first, 'a')
    for (let i = 0; i < 3; i++) await writer.append({ expiresAt: NOW + i })
    await second.reclaim({ now: NOW + 1, trimmedBefore: 0, blocksMax: 100 })
    await writer.append({ expiresAt: FAR })
    await writer.append({ expiresAt: FAR })
    expect(await second.head('a')).toEqual(writer.head)
    expect(await records(second)).toEqual([2, 3, 4])
    const revisions = new Set((await db.getAll('appends')).map(({ revision }) => revision))
    expect([...revisions]).toEqual([(await db.get('logs', 'a'))!.revision])
  })

  it('conflict if one has deleted the log, or created another with its id', async () => {
    const { sessions, db } = await openTwo()
    const [first, second] = sessions
    const writer = await LogWriter.create(first, 'a')
    for (let i = 0; i < 3; i++) await writer.append()
    const { head } = writer
    await second.commit([{ kind: 'delete-log', logId: 'a' }])
    expect(await db.count('appends')).toBe(0)
    await conflicts(writer.append(), 'an append to a log that is gone')
    expect(await db.count('appends')).toBe(0)

    await second.reclaim({ now: 0, trimmedBefore: 0, blocksMax: 100 })
    const again = await LogWriter.create(second, 'a')
    await conflicts(new LogWriter(first, 'a', head).append(), 'an append to a recreated log')
    for (let i = 0; i < 5; i++) await again.append()
    expect(await first.head('a')).toEqual(again.head)
    expect(await records(first)).toEqual(range(0, 5))
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
