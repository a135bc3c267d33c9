// @module-tag slow

import { PGlite } from '@electric-sql/pglite'
import { expect, test } from 'vitest'
import { postgres } from '../../../adapters/storage/postgres/index.ts'
import { open } from '../../../src/index.ts'
import { newSchema } from './schemas.ts'

test('appends and reads continue with what a failover that lost commits has left', async () => {
  const client = await PGlite.create()
  const schema = newSchema()
  const hw = await open({ storage: postgres({ client, schema }) })
  const stream = hw.basin('basin').stream('a')
  await stream.append('kept')
  const { rows } = await client.query<Record<string, unknown>>(`SELECT * FROM ${schema}.logs`)
  await stream.append('lost 1')
  await stream.append('lost 2')
  const behind = await open({ storage: postgres({ client, schema }) })
  expect(await behind.basin('basin').stream('a').checkTail()).toMatchObject({ seqNum: 3 })
  const { seq_num, append_id, state } = rows[0]!
  await client.query(`DELETE FROM ${schema}.blocks WHERE end_seq_num > $1`, [seq_num])
  await client.query(`UPDATE ${schema}.logs SET seq_num = $1, append_id = $2, state = $3`, [
    seq_num,
    append_id,
    state,
  ])
  expect(await stream.checkTail()).toMatchObject({ seqNum: 1 })
  expect((await stream.append('new')).start.seqNum).toBe(1)
  expect((await stream.readBatch({ seqNum: 0 })).records.map(({ body }) => body)).toEqual(['kept', 'new'])
  const other = await open({ storage: postgres({ client, schema }) })
  const read = await other.basin('basin').stream('a').readBatch({ seqNum: 0 })
  expect(read.records.map(({ body }) => body)).toEqual(['kept', 'new'])
  // The process that did not check the tail learns of it by the conflict.
  expect((await behind.basin('basin').stream('a').append('newer')).start.seqNum).toBe(2)
  for (const engine of [hw, behind, other]) await engine.close()
  await client.close()
})
