import 'fake-indexeddb/auto'
import { openDB } from 'idb'
import { expect, it, onTestFinished } from 'vitest'
import { indexedDb } from '../../../adapters/storage/indexeddb/index.ts'
import type { Schema } from '../../../adapters/storage/indexeddb/schema.ts'
import { systemClock } from '../../../src/engine/system-clock.ts'
import { seqNumsOf } from '../../../src/storage/conformance/blocks.ts'
import { LogWriter, WHOLE_LOG } from '../../../src/storage/conformance/log-writer.ts'

it('a log whose tail is damaged takes no appends and says why; one that shares its transaction does', async () => {
  const session = await indexedDb('damaged').open({ clock: systemClock, onLogChanged: () => {} })
  onTestFinished(() => session.close())
  const [damaged, other] = [await LogWriter.create(session, 'a'), await LogWriter.create(session, 'b')]
  await Promise.all([damaged.append(), other.append()])
  const db = await openDB<Schema>('damaged')
  const row = (await db.get('logs', 'a'))!
  const cut = { ...row.tail, data: row.tail.data.slice(1) }
  await db.put('logs', { ...row, revision: row.revision + 1, tail: cut }, 'a')
  db.close()

  const outcomes = await Promise.allSettled([damaged.append(), other.append()])

  const corrupt = { reason: { kind: 'corrupt', nothingWritten: true } }
  expect(outcomes).toMatchObject([corrupt, { status: 'fulfilled' }])
  await expect(session.read('a', WHOLE_LOG)).rejects.toMatchObject({ kind: 'corrupt' })
  expect(seqNumsOf(await session.read('b', WHOLE_LOG))).toEqual([0, 1])
})
