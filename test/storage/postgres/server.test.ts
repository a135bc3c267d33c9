// @module-tag slow

import { Pool } from 'pg'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { createHandler } from '../../../adapters/http/index.ts'
import { type PostgresOptions, postgres } from '../../../adapters/storage/postgres/index.ts'
import { type Engine, open } from '../../../src/index.ts'
import { Cluster, HAS_POSTGRES, withoutPostgres } from './cluster.ts'
import { newSchema } from './schemas.ts'
import { FORWARD, WireProxy } from './wire-proxy.ts'

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

  test('a role that may only read is rejected at once', async () => {
    const reader = await tablesFor('reader', ['SELECT ON ALL TABLES IN SCHEMA .'])
    await expect(open({ storage: postgres(reader) })).rejects.toMatchObject({
      code: 'storage',
      mayHaveEffects: false,
      message: expect.stringContaining('grant SELECT, INSERT, UPDATE and DELETE on all tables'),
      cause: { kind: 'denied' },
    })
    const hw = await opened({ ...reader, readOnly: true })
    expect(await bodiesOf(hw)).toEqual(['x'])
    const rejection = expect(hw.basin('basin').stream('a').append('y')).rejects
    await rejection.toMatchObject({ code: 'storage', message: 'the storage failed (denied)' })
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

  test('a pooler in transaction mode is rejected, unless the connection string says so', async () => {
    const proxy = await WireProxy.start({ port: () => cluster.port, actionOf: () => FORWARD, isPooler: true })
    const { connectionString } = proxy
    await expect(open({ storage: postgres({ connectionString, schema: newSchema() }) })).rejects.toThrow(
      /unsupported startup parameter: .* add `\?pgbouncer=true` to the connection string/,
    )
    const storage = postgres({ connectionString: `${connectionString}?pgbouncer=true`, schema: newSchema() })
    expect(storage.manifest.notifications).toBe('none')
    const hw = await open({ storage })
    const stream = hw.basin('basin').stream('a')
    for (let i = 0; i < 5; i++) await stream.append(`${i}`)
    expect((await stream.readBatch({ seqNum: 0 })).records.length).toBe(5)
    await hw.close()
    await proxy.close()
  })

  test('a server that confirms commits before they are durable is rejected', async () => {
    await pool.query('CREATE ROLE hasty LOGIN SUPERUSER')
    await pool.query('ALTER ROLE hasty SET synchronous_commit = off')
    await expect(open({ storage: postgres({ connectionString: as('hasty') }) })).rejects.toMatchObject({
      message: expect.stringContaining('set `synchronous_commit` to on'),
      cause: { kind: 'denied' },
    })
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
      message: expect.stringContaining(
        'the server is a standby, or the role is read-only: connect to the primary',
      ),
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

  test('a handler on a stopped server replies with 503, and serves once the server runs', async () => {
    const stopped = await Cluster.start()
    onTestFinished(() => stopped.dispose())
    await stopped.kill()
    const { connectionString } = stopped
    const handler = createHandler(
      async () => {
        const hw = await open({ storage: postgres({ connectionString, retryMs: 100 }) })
        onTestFinished(() => hw.close())
        return hw
      },
      { auth: 'none', onError: () => {} },
    )
    const get = () => handler(new Request('http://localhost/v1/basins'))
    const refused = await get()
    expect(refused.status).toBe(503)
    expect(await refused.json()).toMatchObject({ code: 'unavailable' })
    await stopped.run()
    expect((await get()).status).toBe(200)
  })
})
