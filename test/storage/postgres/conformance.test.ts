// @module-tag slow

import { Pool } from 'pg'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { conformanceSuite } from '../../../adapters/conformance/index.ts'
import { type PostgresOptions, postgres } from '../../../adapters/storage/postgres/index.ts'
import { open } from '../../../src/index.ts'
import { Cluster, HAS_POSTGRES, withoutPostgres } from './cluster.ts'
import { Compatibility } from './compatibility.ts'
import { HAS_PGBOUNCER, PgBouncer, withoutPgBouncer } from './pgbouncer.ts'
import { newSchema } from './schemas.ts'
import { WireProxy } from './wire-proxy.ts'

describe.runIf(HAS_POSTGRES)(`PostgreSQL${withoutPostgres}`, () => {
  const compatibility = new Compatibility(1, 0.01)
  let cluster: Cluster
  let pool: Pool
  let proxy: WireProxy
  let pooler: PgBouncer | undefined
  beforeAll(async () => {
    cluster = await Cluster.start()
    pool = new Pool({ connectionString: cluster.connectionString })
    proxy = await WireProxy.start({
      port: () => cluster.port,
      actionOf: (statement, connection) => compatibility.actionOf(statement, connection),
      isPooler: true,
    })
    if (HAS_PGBOUNCER) pooler = await PgBouncer.start(cluster.port)
  })
  afterAll(async () => {
    await proxy.close()
    await pooler?.dispose()
    await pool.end()
    await cluster.dispose()
  })

  /** Runs the tests of the storage contract whose title matches. */
  function conforms(optionsOf: () => PostgresOptions, titles: RegExp, listen?: boolean): void {
    const { manifest } = postgres({
      connectionString: 'postgres://localhost',
      ...(listen === false && { listen }),
    })
    const make = async () => {
      const schema = newSchema()
      const storage = () => postgres({ ...optionsOf(), schema })
      return {
        storage: storage(),
        reopen: async () => storage(),
        dispose: async () => void (await pool.query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`)),
      }
    }
    const options = {
      manifest,
      make,
      seeds: [Number(process.env.FAST_CHECK_SEED ?? 1)],
      randomOperations: Number(process.env.FAST_CHECK_RUNS ?? 50),
      notificationMsMax: 60_000,
    }
    for (const { title, skip, run } of conformanceSuite(options)) {
      if (skip === undefined && titles.test(title)) test(title, run)
    }
  }

  describe('by a connection string', () => {
    conforms(() => ({ connectionString: cluster.connectionString }), /^/)
  })

  // The statements are the same; connections and notifications are not.
  describe('by a pool', () => {
    conforms(() => ({ client: pool }), /^(shared|elections|lifecycle|random): /)
  })

  describe('as an engine without LISTEN, locks and procedures, that fails often', () => {
    // A call whose answer is lost is repeated: it frees as many blocks again, and reports none of the first.
    const counted = /^(?!.*(frees at most|reports exactly|freed once nothing is left|in bounded steps))/
    const connectionString = () => `${proxy.connectionString}?pgbouncer=true`
    conforms(() => ({ connectionString: connectionString(), listen: true }), counted)

    test('every kind of fault happened', () => {
      expect(new Set(compatibility.faults.keys())).toEqual(
        new Set(['reject', 'cut before', 'cut after', 'late']),
      )
      expect(compatibility.unsupported).toEqual(new Set(['LISTEN']))
    })
  })

  describe.runIf(HAS_PGBOUNCER)(`behind PgBouncer in transaction mode${withoutPgBouncer}`, () => {
    describe('with a connection to the database that listens', () => {
      const listening = () => ({ listenConnectionString: cluster.connectionString })
      conforms(() => ({ connectionString: pooler!.connectionString, ...listening() }), /^/)
    })

    describe('without `LISTEN`', () => {
      const titles = /^(shared|lifecycle): /
      conforms(() => ({ connectionString: pooler!.connectionString }), titles, false)
    })

    test('followers in another process get records without notifications', async () => {
      const schema = newSchema()
      const engine = async () => {
        const hw = await open({ storage: postgres({ connectionString: pooler!.connectionString, schema }) })
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
})
