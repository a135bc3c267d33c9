import 'fake-indexeddb/auto'
import { expect, it, onTestFinished } from 'vitest'
import { LogWriter } from '../../../adapters/conformance/log-writer.ts'
import { indexedDb } from '../../../adapters/storage/indexeddb/index.ts'
import { systemClock } from '../../../src/runtime/clock.ts'
import type { CatalogChange } from '../../../src/storage/contract.ts'

it('frees more deleted logs than one call reads, most of them empty', async () => {
  const session = await indexedDb('deleted').open({ clock: systemClock, onLogChanged: () => {} })
  onTestFinished(() => session.close())
  const logIds = Array.from({ length: 100 }, (_, index) => `empty-${index}`)
  await session.commit(logIds.map((logId) => ({ kind: 'create-log', logId, epoch: 1, createdAt: 0 })))
  const large = await LogWriter.create(session, 'large')
  await large.append({ bodyBytes: 100_000 })
  const deletions: CatalogChange[] = [...logIds, 'large'].map((logId) => ({ kind: 'delete-log', logId }))
  await session.commit(deletions)

  let calls = 0
  let isMore = true
  while (isMore) {
    expect(++calls).toBeLessThan(10)
    isMore = (await session.reclaim({ now: 0, trimmedBefore: 0, blocksMax: 1_000 })).more
  }

  expect(await rowsOf('deleted', ['chores', 'pages', 'parts'])).toEqual([0, 0, 0])
})

async function rowsOf(name: string, stores: readonly string[]): Promise<number[]> {
  const db = await answer(indexedDB.open(name))
  const transaction = db.transaction([...stores], 'readonly')
  const counts = await Promise.all(stores.map((store) => answer(transaction.objectStore(store).count())))
  db.close()
  return counts
}

function answer<Result>(request: IDBRequest<Result>): Promise<Result> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result)
    request.onerror = () => reject(request.error)
  })
}
