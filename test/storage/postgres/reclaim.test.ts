// @module-tag slow

import { PGlite } from '@electric-sql/pglite'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { type PostgresClient, postgres } from '../../../adapters/storage/postgres/index.ts'
import { systemClock } from '../../../src/index.ts'
import type { StorageSession } from '../../../src/storage/contract.ts'
import { sqlError } from './intercepting-client.ts'
import { newSchema } from './schemas.ts'

let pglite: PGlite
beforeAll(async () => {
  pglite = await PGlite.create()
})
afterAll(() => pglite.close())

const block = (seqNum: number) => ({
  firstSeqNum: seqNum,
  endSeqNum: seqNum + 1,
  firstTimestamp: 1,
  lastTimestamp: 1,
  meteredBytes: 9,
  expiresAt: null,
  data: Uint8Array.of(seqNum),
})

/** A session on a log of five blocks. */
async function openLog(client: PostgresClient, schema: string): Promise<StorageSession> {
  const session = await postgres({ client, schema }).open({ clock: systemClock, onLogChanged() {} })
  onTestFinished(() => session.close())
  await session.commit([{ kind: 'create-log', logId: 'a', epoch: 1, createdAt: 1 }])
  for (let i = 0; i < 5; i++) {
    const head = (await session.head('a'))!
    await session.append({
      logId: 'a',
      expected: { epoch: 1, seqNum: i, appendId: head.appendId },
      block: block(i),
      head: { ...head, tail: { seqNum: i + 1, timestamp: 1 }, appendId: `append-${i}` },
    })
  }
  return session
}

/** A session on a deleted log of five blocks. */
async function deletedLog(client: PostgresClient, schema: string): Promise<StorageSession> {
  const session = await openLog(client, schema)
  await session.commit([{ kind: 'delete-log', logId: 'a' }])
  return session
}

const blocksOf = async (schema: string) => (await pglite.query(`SELECT 1 FROM ${schema}.blocks`)).rows.length
const all = { now: 2, trimmedBefore: 2, blocksMax: 100 }

test('reclaim frees fewer blocks at a time after a statement timeout', async () => {
  const counts: unknown[] = []
  const client: PostgresClient = {
    query: (text, values) => {
      if (!text.includes('DELETE FROM') || !text.includes('freed')) return pglite.query(text, values)
      counts.push(values?.[0])
      return Number(values?.[0]) > 2 ? Promise.reject(sqlError('57014')) : pglite.query(text, values)
    },
  }
  const schema = newSchema()
  const session = await deletedLog(client, schema)
  expect(await session.reclaim(all)).toMatchObject({ more: false })
  expect(await blocksOf(schema)).toBe(0)
  expect(counts.slice(0, 3)).toEqual([100, 13, 2])
})
