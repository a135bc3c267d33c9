import 'fake-indexeddb/auto'
import { openDB } from 'idb'
import { describe, expect, it, onTestFinished } from 'vitest'
import { indexedDb } from '../../../adapters/storage/indexeddb/index.ts'
import { SCHEMA_VERSION } from '../../../adapters/storage/indexeddb/schema.ts'
import { virtualClock } from '../../../adapters/testing/index.ts'
import { open } from '../../../src/index.ts'
import { systemClock } from '../../../src/runtime/clock.ts'
import { makeVersion1 } from './version-1.ts'
import { checkVersion1 } from './version-1-check.ts'

const context = { clock: systemClock, onLogChanged: () => {} }

async function openSession(name: string) {
  const session = await indexedDb(name).open(context)
  onTestFinished(() => session.close())
  return session
}

describe('the schema', () => {
  it('keeps all data in an upgrade from version 1', async () => {
    await makeVersion1('version 1')
    await checkVersion1(await openSession('version 1'))
  })

  it('opening rejects if a newer version has upgraded the database', async () => {
    const newer = await openDB('newer', SCHEMA_VERSION + 1)
    onTestFinished(() => newer.close())
    await expect(indexedDb('newer').open(context)).rejects.toMatchObject({
      name: 'StorageFailure',
      kind: 'upgraded',
      nothingWritten: true,
      message: expect.stringContaining('newer version'),
    })
  })

  it('a session does not block an upgrade, and explains why later calls fail', async () => {
    const session = await openSession('given up')
    await session.commit([{ kind: 'put', collection: 'streams', key: 'a', value: 1 }])
    const newer = await openDB('given up', SCHEMA_VERSION + 1)
    onTestFinished(() => newer.close())
    for (const call of [() => session.get('streams', 'a'), () => session.commit([])]) {
      await expect(call()).rejects.toMatchObject({ kind: 'upgraded' })
    }
  })

  it('an engine with old code says so after an upgrade, and its followers end with it', async () => {
    const clock = virtualClock()
    const hw = await open({ storage: indexedDb('outdated'), clock, onBackgroundError: () => {} })
    onTestFinished(() => hw.close().catch(() => {}))
    const stream = hw.basin('basin').stream('stream')
    await stream.append('before')
    const batches = stream.follow({ seqNum: 0 }).batches()
    await batches.next()
    const next = batches.next()
    const newer = await openDB('outdated', SCHEMA_VERSION + 1)
    onTestFinished(() => newer.close())
    const upgraded = { code: 'storage_upgraded', message: expect.stringContaining('reload the page') }
    await expect(next).rejects.toMatchObject(upgraded)
    await expect(stream.append('after')).rejects.toMatchObject(upgraded)
    await expect(stream.readBatch()).rejects.toMatchObject(upgraded)
    await expect(open({ storage: indexedDb('outdated'), clock })).rejects.toMatchObject(upgraded)
  })

  it('a session does not block the deletion of the database, and continues with an empty one', async () => {
    const session = await openSession('deleted')
    await session.commit([{ kind: 'put', collection: 'streams', key: 'a', value: 1 }])
    await new Promise<void>((resolve, reject) => {
      const request = indexedDB.deleteDatabase('deleted')
      request.onsuccess = () => resolve()
      request.onblocked = () => reject(new Error('blocked'))
    })
    expect(await session.get('streams', 'a')).toBeUndefined()
    await session.commit([{ kind: 'put', collection: 'streams', key: 'a', value: 2 }])
    expect(await session.get('streams', 'a')).toMatchObject({ value: 2 })
  })

  it('a blocked upgrade rejects after 10 s, and succeeds once the other connection is closed', async () => {
    await makeVersion1('blocked')
    const blocking = await openDB('blocked', 1)
    const clock = virtualClock()
    const opening = indexedDb('blocked').open({ ...context, clock })
    const outcome = expect(opening).rejects.toMatchObject({
      kind: 'blocked',
      nothingWritten: true,
      message: expect.stringContaining('keeps it open'),
    })
    await clock.advance('10s')
    await outcome
    blocking.close()
    const session = await openSession('blocked')
    await checkVersion1(session)
  })

  it('opening keeps no connection if it succeeds after the timeout', async () => {
    await makeVersion1('late')
    const blocking = await openDB('late', 1)
    const clock = virtualClock()
    const opening = indexedDb('late').open({ ...context, clock })
    const outcome = expect(opening).rejects.toMatchObject({ kind: 'blocked' })
    await clock.advance('10s')
    await outcome
    blocking.close()
    const db = await openDB('late', SCHEMA_VERSION + 1, { blocked: () => expect.fail('blocked') })
    db.close()
  })
})
