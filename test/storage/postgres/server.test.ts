import { Pool } from 'pg'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { type PostgresOptions, postgres } from '../../../adapters/storage/postgres/index.ts'
import { type Headwater, open } from '../../../src/index.ts'
import { Cluster, HAS_POSTGRES, withoutPostgres } from './cluster.ts'
import { newSchema } from './schemas.ts'
import { FORWARD, type StatementAction, WireProxy } from './wire-proxy.ts'

describe.runIf(HAS_POSTGRES)(`a server${withoutPostgres}`, () => {
  let cluster: Cluster
  let pool: Pool
  beforeAll(async () => {
    cluster = await Cluster.start()
    pool = new Pool({ connectionString: cluster.connectionString })
  })
  afterAll(async () => {
    await pool.end()
    await cluster.dispose()
  })

  async function opened(options: PostgresOptions): Promise<Headwater> {
    const hw = await open({ storage: postgres(options) })
    onTestFinished(() => hw.close())
    return hw
  }

  const as = (role: string) => cluster.connectionString.replace('//test@', `//${role}@`)
  const CUT: StatementAction = { kind: 'cut before' }
  const CANCELLED: StatementAction = { kind: 'reject', code: '57014', message: 'canceling statement' }

  // The first statement asks for the default, and gets no answer.
  test.each([
    ['is lost', [CUT, CUT, CUT, CUT]],
    ['is cancelled', [CANCELLED]],
  ])(
    'its defaults for isolation and durability do not matter if the query for them %s',
    async (_, actions) => {
      const schema = newSchema()
      const role = `lax_${schema}`
      await pool.query(`CREATE ROLE ${role} LOGIN SUPERUSER`)
      for (const setting of [
        'synchronous_commit = off',
        'default_transaction_isolation = serializable',
        'search_path = pg_catalog',
      ]) {
        await pool.query(`ALTER ROLE ${role} SET ${setting}`)
      }
      const remaining = [...actions]
      const proxy = await WireProxy.start({
        port: () => cluster.port,
        actionOf: () => remaining.shift() ?? FORWARD,
      })
      onTestFinished(() => proxy.close())
      const connectionString = proxy.connectionString.replace('//test@', `//${role}@`)
      const hw = await opened({ connectionString, schema })
      await pool.query(`CREATE TABLE ${schema}.seen (durable text, isolation text)`)
      await pool.query(`CREATE FUNCTION ${schema}.see() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      INSERT INTO ${schema}.seen VALUES (current_setting('synchronous_commit'),
        current_setting('transaction_isolation'));
      RETURN NEW; END $$`)
      await pool.query(`CREATE TRIGGER see BEFORE INSERT ON ${schema}.blocks FOR EACH ROW
      EXECUTE FUNCTION ${schema}.see()`)
      await hw.basin('basin').stream('a').append('x')
      const { rows } = await pool.query(`SELECT * FROM ${schema}.seen`)
      expect(rows).toEqual([{ durable: 'on', isolation: 'read committed' }])
    },
  )

  test('appends and reads never scan a table, and replace the heads in place', async () => {
    const schema = newSchema()
    const hw = await open({ storage: postgres({ connectionString: cluster.connectionString, schema }) })
    const stream = hw.basin('basin').stream('a')
    await stream.append('first')
    // The plans are made for small tables.
    await pool.query(`ANALYZE ${schema}.blocks, ${schema}.logs, ${schema}.documents`)
    for (let i = 0; i < 60; i++) {
      await stream.append(`${i}`)
      await stream.read({ seqNum: i, count: 1 })
      await stream.read({ timestamp: 1, count: 1 })
    }
    for (let i = 0; i < 60; i++) await hw.basin('basin').listStreams({ prefix: 'a' })
    await hw.close()
    // The server counts what a connection did once it has ended.
    const tables = async () => {
      const { rows } =
        await pool.query(`SELECT relname AS name, seq_scan::int AS scans, n_tup_upd::int AS updated,
        n_tup_hot_upd::int AS in_place FROM pg_stat_user_tables WHERE schemaname = '${schema}'`)
      return new Map(rows.map((row) => [row.name, row]))
    }
    await vi.waitUntil(async () => (await tables()).get('logs').updated >= 60, { timeout: 30_000 })
    const counted = await tables()
    const { updated, in_place } = counted.get('logs')
    expect(in_place).toBe(updated)
    // Creating an index scans the table.
    for (const name of ['blocks', 'logs', 'documents']) expect(counted.get(name).scans).toBeLessThan(5)
  })

  test('a role without the privilege to create uses tables that exist', async () => {
    const schema = newSchema()
    await (await open({ storage: postgres({ connectionString: cluster.connectionString, schema }) })).close()
    await pool.query('CREATE ROLE modest LOGIN')
    await pool.query(`GRANT USAGE ON SCHEMA ${schema} TO modest`)
    await pool.query(`GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ${schema} TO modest`)
    const hw = await opened({ connectionString: as('modest'), schema })
    const stream = hw.basin('basin').stream('a')
    await stream.append('x')
    expect((await stream.read({ seqNum: 0 })).records[0]?.body).toBe('x')
    const missing = postgres({ connectionString: as('modest'), schema: newSchema() })
    await expect(open({ storage: missing })).rejects.toThrow(/permission denied for database/)
  })

  test('a pool with a single connection is not kept for listening', async () => {
    const client = new Pool({ connectionString: cluster.connectionString, max: 1 })
    const hw = await open({ storage: postgres({ client, schema: newSchema() }) })
    await hw.basin('basin').stream('a').append('x')
    await hw.close()
    await client.end()
  })

  test('behind a pooler in transaction mode, statements are not prepared', async () => {
    const proxy = await WireProxy.start({ port: () => cluster.port, actionOf: () => FORWARD, isPooler: true })
    // The pooler refuses to turn it on.
    await pool.query('CREATE ROLE hasty LOGIN SUPERUSER')
    await pool.query('ALTER ROLE hasty SET synchronous_commit = off')
    const connectionString = proxy.connectionString.replace('//test@', '//hasty@')
    const hw = await open({ storage: postgres({ connectionString, schema: newSchema() }) })
    const stream = hw.basin('basin').stream('a')
    for (let i = 0; i < 5; i++) await stream.append(`${i}`)
    expect((await stream.read({ seqNum: 0 })).records.length).toBe(5)
    expect(proxy.refused).toContain('settings')
    expect(proxy.refused).toContain('prepared statement')
    await hw.close()
    await proxy.close()
  })

  test('a read-only standby serves reads, and rejects appends', async () => {
    const primary = await Cluster.start()
    onTestFinished(() => primary.dispose())
    const writer = await open({ storage: postgres({ connectionString: primary.connectionString }) })
    await writer.basin('basin').stream('a').append('x')
    const standby = await primary.standby()
    onTestFinished(() => standby.dispose())
    const { connectionString } = standby
    const reader = await open({ storage: postgres({ connectionString, retryMs: 0 }) })
    const stream = reader.basin('basin').stream('a')
    expect((await stream.read({ seqNum: 0 })).records[0]?.body).toBe('x')
    await expect(stream.append('y')).rejects.toMatchObject({ code: 'storage', mayHaveEffects: false })
    await reader.close()
    await writer.close()
  })
})
