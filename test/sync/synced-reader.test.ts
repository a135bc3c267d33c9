import { afterEach, expect, test, vi } from 'vitest'
import { memory } from '../../adapters/storage/memory/index.ts'
import { virtualClock } from '../../adapters/testing/index.ts'
import { type Engine, open, type Stream } from '../../src/index.ts'
import { HeadwaterError } from '../../src/model/errors.ts'
import type { RecordView } from '../../src/sync/record-view.ts'
import type { SyncedRecord } from '../../src/sync/synced-record.ts'
import { NONCE, PendingEntries, TextReader } from './pending-entries.ts'

let hw: Engine
const clock = virtualClock()

async function copyOf() {
  hw = await open({ storage: memory(), clock })
  const local = hw.basin('app').stream('chat')
  const outbox = new PendingEntries()
  return { local, outbox, reads: new TextReader(local, outbox) }
}

afterEach(async () => hw.close())

const mine = (number: number, body: string) => ({
  body,
  headers: [['headwater-origin', `device/${number}/${NONCE}`] as const],
})
const textOf = (records: Iterable<SyncedRecord>) =>
  Array.from(records, ({ body, isPending }) => (isPending ? `(${body})` : body)).join(' ')

/** Keeps what a view emits, and the list that the changes make. */
function watch(reads: TextReader, query?: Parameters<TextReader['view']>[0]) {
  const views: RecordView<SyncedRecord>[] = []
  const list: SyncedRecord[] = []
  const subscription = reads.view(query).subscribe((view) => {
    views.push(view)
    list.splice(view.change.index, view.change.removed, ...view.change.inserted)
    expect(list).toEqual(view.toArray())
  })
  return {
    views,
    last: () => views.at(-1)!,
    text: () => textOf(views.at(-1) ?? []),
    stop: () => subscription.unsubscribe(),
  }
}

test('shows confirmed records, then pending ones', async () => {
  const { local, outbox, reads } = await copyOf()
  await local.append(['a', 'b'])
  outbox.add(4, 'mine')
  const view = watch(reads)
  await clock.settle()
  expect(view.text()).toBe('a b (mine)')
  expect(view.last().isCaughtUp).toBe(true)
  const [, , pending] = view.last()
  expect(pending).toMatchObject({
    key: `device/4/${NONCE}`,
    timestamp: 1_004,
    origin: { device: 'device', number: 4 },
  })
  view.stop()
  await clock.settle()
  expect(outbox.listeners).toBe(0)
})

test('begins with the first record unless the query says where, whatever its bounds are', async () => {
  const { local, outbox, reads } = await copyOf()
  await local.append(['a', 'b'])
  outbox.add(4, 'mine')
  expect(textOf(await reads.read({}).toArray())).toBe('a b (mine)')
  expect(textOf(await reads.read({ count: 5 }).toArray())).toBe('a b (mine)')
  expect(textOf(await reads.read({ count: 1 }).toArray())).toBe('a')
  expect(textOf(await reads.read({ tailOffset: 1 }).toArray())).toBe('b (mine)')
  const view = watch(reads, { count: 5 })
  await clock.settle()
  expect(view.text()).toBe('a b (mine)')
  view.stop()
})

test('a record keeps its key from pending to confirmed, and is never shown twice', async () => {
  const { local, outbox, reads } = await copyOf()
  await local.append('a')
  outbox.add(0, 'mine')
  const view = watch(reads)
  await clock.settle()
  await local.append(mine(0, 'mine'))
  await clock.settle()
  expect(view.text()).toBe('a mine')
  outbox.confirm(0, 2)
  await clock.settle()
  expect(view.text()).toBe('a mine')
  for (const { length } of view.views) expect(length).toBeLessThanOrEqual(2)
  expect(view.last().at(1)).toMatchObject({
    key: `device/0/${NONCE}`,
    seqNum: 1,
    headers: [],
    isPending: false,
  })
  view.stop()
})

test('a record of another device goes before the pending ones', async () => {
  const { local, outbox, reads } = await copyOf()
  await local.readBatch({}, { create: true })
  outbox.add(0, 'mine')
  const view = watch(reads)
  await clock.settle()
  await local.append({ body: 'other', headers: [['headwater-origin', `somewhere/0/${NONCE}`]] })
  await clock.settle()
  expect(view.text()).toBe('other (mine)')
  expect(view.last().change).toMatchObject({ index: 0, removed: 0 })
  view.stop()
})

test('a view that starts at the tail does not show records as pending that were confirmed before', async () => {
  const { local, outbox, reads } = await copyOf()
  outbox.add(0, 'mine')
  outbox.add(1, 'later')
  await local.append([mine(0, 'mine'), 'b', 'c'])
  await outbox.found(await local.read({}, { as: 'bytes' }).toArray())
  const view = watch(reads, { tailOffset: 1 })
  await clock.settle()
  expect(view.text()).toBe('c (later)')
  outbox.confirm(0, 3)
  await clock.settle()
  expect(view.text()).toBe('c (later)')
  view.stop()
})

test('a view can start at the tail of a copy whose records were all trimmed', async () => {
  const { local, outbox, reads } = await copyOf()
  await local.append(['a', mine(4, 'mine')])
  await local.trim(3)
  outbox.add(4, 'mine')
  outbox.add(5, 'next')
  const view = watch(reads, { tailOffset: 0 })
  await clock.settle()
  expect(view.text()).toBe('(mine) (next)')
  view.stop()
})

test.each(['view', 'read'])('a copy that restarts while a %s finds its start replaces it', async (kind) => {
  const { local, outbox, reads } = await copyOf()
  await local.append(['a', mine(4, 'mine'), 'b'])
  outbox.add(4, 'mine')
  vi.spyOn(local, 'openCursor').mockImplementationOnce(async () => {
    await local.delete()
    await local.append('new')
    throw new HeadwaterError('stream_deleted', 'deleted')
  })
  if (kind === 'read') {
    expect(textOf(await reads.read({ tailOffset: 1 }).toArray())).toBe('new (mine)')
    return
  }
  const view = watch(reads, { tailOffset: 1 })
  await clock.settle()
  expect(view.text()).toBe('new (mine)')
  view.stop()
})

test('pending records are shown while there is no local copy', async () => {
  const { local, outbox, reads } = await copyOf()
  const view = watch(reads)
  outbox.add(0, 'offline')
  await clock.settle()
  expect(view.text()).toBe('(offline)')
  await local.append(['a', mine(0, 'offline')])
  outbox.change({})
  await clock.settle()
  expect(view.text()).toBe('a offline')
  view.stop()
})

test('a copy that is created while a view looks for it is shown', async () => {
  const { local, outbox, reads } = await copyOf()
  const identity = local.identity.bind(local)
  vi.spyOn(local, 'identity').mockImplementationOnce(async () => {
    const found = identity()
    await found.catch(() => {})
    await local.append('a')
    outbox.change({})
    return found
  })
  const view = watch(reads)
  await clock.settle()
  expect(view.text()).toBe('a')
  view.stop()
})

test('a closed copy that is replaced while a view reads its end is not taken for the new one', async () => {
  const { local, reads } = await copyOf()
  await local.append('a')
  await local.close()
  const openCursor = local.openCursor.bind(local)
  vi.spyOn(local, 'openCursor').mockImplementationOnce(async (...args) => {
    const cursor = (await openCursor(...args))!
    const next = async () => {
      const event = await cursor.next()
      if (event !== undefined) return event
      await local.delete()
      await local.append('new')
      return undefined
    }
    return { next, close: () => cursor.close() } as typeof cursor
  })
  const view = watch(reads)
  await clock.settle()
  expect(view.text()).toBe('new')
  view.stop()
})

test('a discarded record leaves the view, a refused one keeps its place with the error', async () => {
  const { outbox, reads } = await copyOf()
  outbox.add(0, 'first')
  outbox.add(1, 'second')
  const view = watch(reads)
  await clock.settle()
  const error = new HeadwaterError('permission_denied', 'the token does not permit appends')
  outbox.add(0, 'first', error)
  await clock.settle()
  expect(view.last().at(0)).toMatchObject({ isPending: true, error })
  outbox.discard(0)
  await clock.settle()
  expect(view.text()).toBe('(second)')
  view.stop()
})

test('a trim removes records from the beginning of the view', async () => {
  const { local, outbox, reads } = await copyOf()
  await local.append(['a', 'b', 'c'])
  const view = watch(reads)
  await clock.settle()
  outbox.add(0, 'mine')
  await local.trim(2)
  await clock.settle()
  expect(view.text()).toBe('c (mine)')
  view.stop()
})

test('a restarted copy replaces everything but the pending records', async () => {
  const { local, outbox, reads } = await copyOf()
  await local.append(['a', 'b'])
  outbox.add(7, 'mine')
  const view = watch(reads)
  await clock.settle()
  await local.delete()
  await clock.settle()
  expect(view.text()).toBe('(mine)')
  await local.append(['x', 'y', 'z'])
  outbox.change({})
  await clock.settle()
  expect(view.text()).toBe('x y z (mine)')
  view.stop()
})

test('a read ends with the pending records', { tags: ['slow'] }, async () => {
  const { local, outbox, reads } = await copyOf()
  for (let index = 0; index < 3; index++)
    await local.append(Array.from({ length: 900 }, (_, at) => `${index}.${at}`))
  outbox.add(0, 'mine')
  const reading = reads.read()
  const records: SyncedRecord[] = []
  for await (const record of reading) records.push(record)
  expect(records).toHaveLength(2_701)
  expect(await reading.toArray()).toEqual(records)
  expect(records.at(-1)).toMatchObject({ body: 'mine', isPending: true })
  expect(outbox.listeners).toBe(0)
})

/** Appends three batches, each of which a read returns alone. */
async function appendBatches(local: Stream): Promise<void> {
  for (let index = 0; index < 3; index++) await local.append(Array.from({ length: 900 }, () => 'stored'))
}

test('a read of records that follow faster than it is consumed ends', { tags: ['slow'] }, async () => {
  const { local, outbox, reads } = await copyOf()
  await appendBatches(local)
  outbox.add(0, 'mine')
  const records: SyncedRecord[] = []
  for await (const record of reads.read()) {
    records.push(record)
    if (records.length % 300 === 0) await local.append(Array.from({ length: 300 }, () => 'new'))
    if (records.length > 9_000) break
  }
  expect(records.filter(({ body }) => body === 'stored')).toHaveLength(2_700)
  expect(records.length).toBeLessThan(9_000)
  expect(records.at(-1)).toMatchObject({ body: 'mine', isPending: true })
})

test('a read never continues with the records of another copy', async () => {
  const { local, reads } = await copyOf()
  await appendBatches(local)
  const bodies = new Set<string>()
  const reading = (async () => {
    for await (const { body } of reads.read()) {
      if (bodies.size === 0) {
        await local.delete()
        await local.append(['other'])
      }
      bodies.add(body)
    }
  })()
  await expect(reading).rejects.toMatchObject({ code: 'stream_deleted' })
  expect([...bodies]).toEqual(['stored'])
})

test('a read rejects with the reason of its signal', async () => {
  const { outbox, reads } = await copyOf()
  outbox.device = undefined
  outbox.loaded = () => new Promise(() => {})
  const leaving = new AbortController()
  const reading = reads.read(undefined, { signal: leaving.signal }).toArray()
  const reason = new Error('left')
  leaving.abort(reason)
  await expect(reading).rejects.toBe(reason)
  expect(outbox.listeners).toBe(0)
})
