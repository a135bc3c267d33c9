import { Pool } from 'pg'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { conformanceSuite } from '../../../adapters/conformance/index.ts'
import { postgres } from '../../../adapters/storage/postgres/index.ts'
import { open } from '../../../src/index.ts'
import { Cluster } from './cluster.ts'
import { HAS_PGBOUNCER, PgBouncer, withoutPgBouncer } from './pgbouncer.ts'
import { newSchema } from './schemas.ts'

describe.runIf(HAS_PGBOUNCER)(`behind PgBouncer in transaction mode${withoutPgBouncer}`, () => {
  let cluster: Cluster
  let pooler: PgBouncer
  let pool: Pool
  beforeAll(async () => {
    cluster = await Cluster.start()
    pooler = await PgBouncer.start(cluster.port)
    pool = new Pool({ connectionString: cluster.connectionString })
  })
  afterAll(async () => {
    await pool.end()
    await pooler.dispose()
    await cluster.dispose()
  })

  describe.each([
    ['with a connection to the database that listens', true],
    ['without `LISTEN`', false],
  ])('%s', (_name, listen) => {
    const { manifest } = postgres({ connectionString: 'postgres://localhost', listen })
    const make = async () => {
      const schema = newSchema()
      const options = {
        connectionString: pooler.connectionString,
        schema,
        listen,
        ...(listen && { listenConnectionString: cluster.connectionString }),
      }
      return {
        storage: postgres(options),
        reopen: async () => postgres(options),
        dispose: async () => void (await pool.query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`)),
      }
    }
    const suite = conformanceSuite({ manifest, make, seeds: [1], notificationMsMax: 60_000 })
    for (const { title, skip, run } of suite) {
      // Without `LISTEN`, only what depends on it is repeated.
      if (skip === undefined && (listen || /^(notifications|shared|lifecycle): /.test(title)))
        test(title, run)
    }
  })

  test('followers in another process get records, although the pooler passes no notifications on', async () => {
    const schema = newSchema()
    const engine = async () => {
      const hw = await open({ storage: postgres({ connectionString: pooler.connectionString, schema }) })
      onTestFinished(() => hw.close())
      return hw
    }
    const [writer, reader] = [await engine(), await engine()]
    await writer.basin('basin').stream('a').append('x')
    const following = reader.basin('basin').stream('a').follow({ seqNum: 0 })[Symbol.asyncIterator]()
    expect((await following.next()).value?.body).toBe('x')
    const next = following.next()
    await writer.basin('basin').stream('a').append('y')
    expect((await next).value?.body).toBe('y')
    await following.return?.()
  })
})
