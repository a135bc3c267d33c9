import { Pool } from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { conformanceSuite } from '../../../adapters/conformance/index.ts'
import { postgres } from '../../../adapters/storage/postgres/index.ts'
import { Cluster, HAS_POSTGRES, withoutPostgres } from './cluster.ts'
import { Compatibility } from './compatibility.ts'
import { newSchema } from './schemas.ts'
import { WireProxy } from './wire-proxy.ts'

describe.runIf(HAS_POSTGRES)(
  `an engine without LISTEN, locks and procedures, that fails often${withoutPostgres}`,
  () => {
    const compatibility = new Compatibility(1, 0.01)
    let cluster: Cluster
    let proxy: WireProxy
    let pool: Pool
    beforeAll(async () => {
      cluster = await Cluster.start()
      proxy = await WireProxy.start({
        port: () => cluster.port,
        actionOf: (statement) => compatibility.actionOf(statement),
        isPooler: true,
      })
      pool = new Pool({ connectionString: cluster.connectionString })
    })
    afterAll(async () => {
      await proxy.close()
      await pool.end()
      await cluster.dispose()
    })

    const storageOf = (schema: string) => postgres({ connectionString: proxy.connectionString, schema })
    const make = async () => {
      const schema = newSchema()
      return {
        storage: storageOf(schema),
        reopen: async () => storageOf(schema),
        dispose: async () => void (await pool.query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`)),
      }
    }
    const { manifest } = postgres({ connectionString: 'postgres://localhost' })
    for (const { title, skip, run } of conformanceSuite({
      manifest,
      make,
      seeds: [1],
      notificationMsMax: 60_000,
    })) {
      // A call whose answer is lost is repeated, and frees as many blocks again.
      if (skip === undefined && !title.includes('frees at most')) test(title, run)
    }

    test('every kind of fault happened', () => {
      expect(new Set(compatibility.faults.keys())).toEqual(
        new Set(['reject', 'cut before', 'cut after', 'late']),
      )
      expect(compatibility.unsupported).toEqual(new Set(['LISTEN']))
    })
  },
)
