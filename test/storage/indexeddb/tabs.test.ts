import 'fake-indexeddb/auto'
import { expect, it, onTestFinished } from 'vitest'
import { indexedDb } from '../../../adapters/storage/indexeddb/index.ts'
import { type Engine, open } from '../../../src/index.ts'
import type { Storage } from '../../../src/storage/contract.ts'
import { outcomeOf, silent } from '../../support/index.ts'

/** Two engines on one database, as in two tabs. */
async function openTabs(storage: () => Storage, options: object = {}): Promise<[Engine, Engine]> {
  const openTab = () => open({ storage: storage(), ...options })
  const tabs = [await openTab(), await openTab()] as const
  onTestFinished(() => Promise.all(tabs.map((tab) => tab.close())).then(() => {}))
  return [...tabs]
}

it('no tab acknowledges an append that begins after the deletion of its basin in another one', async () => {
  // They learn of nothing by themselves.
  const [tab, other] = await openTabs(() => silent(indexedDb('basin-deletion'), 'none'), {
    autoCreate: false,
  })
  const names = Array.from({ length: 6 }, (_, i) => `stream-${i}`)
  await tab.createBasin('basin')
  for (const name of names) await tab.basin('basin').createStream(name)
  const streams = names.map((name) => other.basin('basin').stream(name))
  await Promise.all(streams.map((stream) => stream.append('before')))
  await tab.basin('basin').delete()
  const outcomes = await Promise.all(streams.map((stream) => outcomeOf(stream.append('after'))))
  expect(outcomes).not.toContain('ok')
})

it('a follower receives the batch of another tab undivided', async () => {
  const [writing, reading] = await openTabs(() => indexedDb('followed'))
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

it('small appends are merged in the background', async () => {
  const hw = await open({ storage: indexedDb('merged') })
  const stream = hw.basin('basin').stream('stream')
  for (let i = 0; i < 200; i++) await stream.append(`${i}`)
  await hw.close()
  const keys = await new Promise<IDBValidKey[]>((resolve, reject) => {
    const opening = indexedDB.open('merged')
    opening.onerror = () => reject(opening.error)
    opening.onsuccess = () => {
      const reading = opening.result.transaction('entries').objectStore('entries').getAllKeys()
      reading.onsuccess = () => resolve(reading.result)
    }
  })
  // Blocks, the log, documents and the format.
  expect(keys.length).toBeLessThan(100)
})
