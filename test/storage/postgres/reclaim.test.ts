// @module-tag slow

import { PGlite } from '@electric-sql/pglite'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { type PostgresClient, postgres } from '../../../adapters/storage/postgres/index.ts'
import { systemClock } from '../../../src/index.ts'
import type { StorageSession } from '../../../src/storage/contract.ts'
import { interceptingClient, sqlError } from './intercepting-client.ts'
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

test('reclaim continues after another process has freed the same blocks', async () => {
  let isFirst = true
  const client = interceptingClient(pglite, (text) => {
    // As if the rows that were selected had been deleted meanwhile.
    if (!text.includes('freed AS') || !text.includes('log = $2') || !isFirst) return undefined
    isFirst = false
    return Promise.resolve({ rows: [] })
  })
  const schema = newSchema()
  const session = await deletedLog(client, schema)
  await session.reclaim(all)
  expect(isFirst).toBe(false)
  expect(await blocksOf(schema)).toBe(0)
})

test('reclaim names a trimmed log whose blocks were freed, even if the response was lost', async () => {
  let isLost = false
  const client = interceptingClient(pglite, (text, run) => {
    if (!text.includes('freed AS') || !text.includes('log = $2') || isLost) return undefined
    isLost = true
    return run().then(() => Promise.reject(new Error('Connection terminated unexpectedly')))
  })
  const schema = newSchema()
  const session = await openLog(client, schema)
  const head = (await session.head('a'))!
  await session.append({
    logId: 'a',
    expected: { epoch: 1, seqNum: 5, appendId: head.appendId },
    block: block(5),
    head: {
      ...head,
      tail: { seqNum: 6, timestamp: 1 },
      appendId: 'trim',
      trimPoint: 5,
      trims: [{ point: 5, at: 2 }],
    },
  })
  expect(await session.reclaim(all)).toEqual({ more: false, logIds: ['a'] })
  expect(isLost).toBe(true)
  expect(await blocksOf(schema)).toBe(1)
})
