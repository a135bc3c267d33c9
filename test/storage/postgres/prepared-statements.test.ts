// @module-tag slow

import { PGlite } from '@electric-sql/pglite'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { prepared } from '../../../adapters/storage/postgres/database.ts'
import { postgres } from '../../../adapters/storage/postgres/index.ts'
import { open } from '../../../src/index.ts'
import { sqlError } from './intercepting-client.ts'
import { newSchema } from './schemas.ts'

let pglite: PGlite
beforeAll(async () => {
  pglite = await PGlite.create()
})
afterAll(() => pglite.close())

/** A pool whose connections are PGlite. */
function poolOf(query: (config: unknown) => Promise<unknown> | undefined) {
  const client = {
    query: (config: string | { text: string; values: unknown[] }, values?: unknown[]) =>
      query(config) ??
      (typeof config === 'string' ? pglite.query(config, values) : pglite.query(config.text, config.values)),
    on: () => {},
    release: () => {},
  }
  return { totalCount: 1, options: { max: 1 }, connect: async () => client, query: client.query }
}

test.each(['26000', '42P05', '0A000'])(
  'are abandoned after %s, and the append takes effect once',
  async (code) => {
    let named = 0
    const client = poolOf((config) => {
      if (typeof config === 'string') return undefined
      named++
      return Promise.reject(sqlError(code))
    })
    const hw = await open({ storage: postgres({ client: client as never, schema: newSchema() }) })
    const stream = hw.basin('basin').stream('a')
    await stream.append('x')
    await stream.append('y')
    expect((await stream.readBatch({ seqNum: 0 })).records.map(({ body }) => body)).toEqual(['x', 'y'])
    expect(named).toBe(1)
    await hw.close()
  },
)

test('the name of a prepared statement is derived from its text', () => {
  expect(prepared('SELECT 1')).toEqual(prepared('SELECT 1'))
  const texts = Array.from({ length: 1_000 }, (_, i) => `SELECT ${i}`)
  expect(new Set(texts.map((text) => prepared(text).name)).size).toBe(texts.length)
  expect(prepared('x'.repeat(1_000)).name.length).toBeLessThan(63)
})
