import { Pool } from 'pg'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { type PostgresOptions, postgres } from '../../../adapters/storage/postgres/index.ts'
import { type Engine, open } from '../../../src/index.ts'
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

  async function opened(options: PostgresOptions): Promise<Engine> {
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
      await stream.readBatch({ seqNum: i, count: 1 })
      await stream.readBatch({ timestamp: 1, count: 1 })
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
    expect((await stream.readBatch({ seqNum: 0 })).records[0]?.body).toBe('x')
    const missing = postgres({ connectionString: as('modest'), schema: newSchema() })
    await expect(open({ storage: missing })).rejects.toMatchObject({
      message: expect.stringContaining('permission denied for database'),
      cause: { kind: 'denied' },
    })
  })

  /** Tables with a record, and a role with the given privileges on them. */
  async function tablesFor(role: string, privileges: readonly string[]) {
    const schema = newSchema()
    const owner = await opened({ connectionString: cluster.connectionString, schema })
    await owner.basin('basin').stream('a').append('x')
    await pool.query(`CREATE ROLE ${role} LOGIN; GRANT USAGE ON SCHEMA ${schema} TO ${role}`)
    for (const privilege of privileges) {
      await pool.query(`GRANT ${privilege.replaceAll('.', `${schema}.`).replace(/\.$/, '')} TO ${role}`)
    }
    return { schema, connectionString: as(role) }
  }

  async function bodiesOf(hw: Engine): Promise<unknown[]> {
    const { records } = await hw.basin('basin').stream('a').readBatch({ seqNum: 0 })
    return records.map(({ body }) => body)
  }

  test('a role that may only read is rejected at once, with the privileges that it lacks', async () => {
    const reader = await tablesFor('reader', ['SELECT ON ALL TABLES IN SCHEMA .'])
    const lacking =
      'INSERT on documents, UPDATE on documents, DELETE on documents, INSERT on logs, UPDATE on logs, ' +
      'DELETE on logs, INSERT on blocks, DELETE on blocks, INSERT on commits, DELETE on commits, ' +
      'INSERT on leases, UPDATE on leases, DELETE on leases'
    await expect(open({ storage: postgres(reader) })).rejects.toMatchObject({
      code: 'storage',
      mayHaveEffects: false,
      message:
        `the storage cannot be opened: the role \`reader\` lacks privileges in schema "${reader.schema}": ` +
        `${lacking}; grant them, or open the storage with \`readOnly: true\``,
      cause: { kind: 'denied' },
    })
    const hw = await opened({ ...reader, readOnly: true })
    expect(await bodiesOf(hw)).toEqual(['x'])
    const rejection = expect(hw.basin('basin').stream('a').append('y')).rejects
    await rejection.toMatchObject({ code: 'storage', message: 'the storage failed (denied)' })
  })

  test('a role needs no more than the documented privileges', async () => {
    const writer = await tablesFor('least', [
      'SELECT ON ALL TABLES IN SCHEMA .',
      'INSERT, DELETE ON .documents, .logs, .blocks, .commits, .leases',
      'UPDATE ON .documents, .logs, .leases',
    ])
    const hw = await opened(writer)
    const stream = hw.basin('basin').stream('a')
    await stream.append(['y', 'z'])
    await stream.trim(1)
    await hw.basin('basin').stream('a').delete()
    await hw.basin('basin').stream('b').append('b')
    expect((await hw.basin('basin').listStreams()).items.map(({ name }) => name)).toEqual(['b'])
  })

  test('a role whose transactions are read-only is rejected at once, with the setting', async () => {
    const role = await tablesFor('careful', ['ALL ON ALL TABLES IN SCHEMA .'])
    await pool.query('ALTER ROLE careful SET default_transaction_read_only = on')
    await expect(open({ storage: postgres(role) })).rejects.toMatchObject({
      code: 'storage',
      message: expect.stringContaining(
        'transactions of the role `careful` are read-only: set `default_transaction_read_only` to off',
      ),
      cause: { kind: 'denied' },
    })
    const hw = await opened({ ...role, readOnly: true })
    expect(await bodiesOf(hw)).toEqual(['x'])
  })

  test('`readOnly` creates no tables', async () => {
    const schema = newSchema()
    const storage = postgres({ connectionString: cluster.connectionString, schema, readOnly: true })
    await expect(open({ storage })).rejects.toThrow(`schema "${schema}" has no tables`)
    const { rows } = await pool.query('SELECT 1 FROM pg_namespace WHERE nspname = $1', [schema])
    expect(rows).toEqual([])
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
    expect((await stream.readBatch({ seqNum: 0 })).records.length).toBe(5)
    expect(proxy.refused).toContain('settings')
    expect(proxy.refused).toContain('prepared statement')
    await hw.close()
    await proxy.close()
  })

  test('a standby is rejected at once; with `readOnly` it serves reads, and rejects appends', async () => {
    const primary = await Cluster.start()
    onTestFinished(() => primary.dispose())
    const writer = await open({ storage: postgres({ connectionString: primary.connectionString }) })
    await writer.basin('basin').stream('a').append('x')
    const standby = await primary.standby()
    onTestFinished(() => standby.dispose())
    const { connectionString } = standby
    await expect(open({ storage: postgres({ connectionString }) })).rejects.toMatchObject({
      message: expect.stringContaining('the server is a read-only standby: connect to the primary'),
      cause: { kind: 'denied' },
    })
    const storage = postgres({ connectionString, retryMs: 0, readOnly: true })
    const reader = await open({ storage })
    const stream = reader.basin('basin').stream('a')
    expect((await stream.readBatch({ seqNum: 0 })).records[0]?.body).toBe('x')
    await expect(stream.append('y')).rejects.toMatchObject({ code: 'storage', mayHaveEffects: false })
    await reader.close()
    await writer.close()
  })
})
