import { PGlite } from '@electric-sql/pglite'
import { Pool } from 'pg'
import { afterAll, beforeAll, describe, test } from 'vitest'
import { type ConformanceFixture, conformanceSuite } from '../../../adapters/conformance/index.ts'
import { type PostgresOptions, postgres } from '../../../adapters/storage/postgres/index.ts'
import { byRun } from '../../support/run-size.ts'
import { Cluster, HAS_POSTGRES, withoutPostgres } from './cluster.ts'
import { newSchema } from './schemas.ts'

const { manifest } = postgres({ connectionString: 'postgres://localhost' })

function suite(make: () => Promise<ConformanceFixture>, seeds: readonly number[], group = /^/): void {
  for (const { title, skip, run } of conformanceSuite({ manifest, make, seeds, notificationMsMax: 60_000 })) {
    if (skip === undefined && group.test(title)) test(title, run)
  }
}

function fixture(
  options: PostgresOptions,
  execute: (statement: string) => Promise<unknown>,
): ConformanceFixture {
  const schema = newSchema()
  return {
    storage: postgres({ ...options, schema }),
    reopen: async () => postgres({ ...options, schema }),
    dispose: async () => void (await execute(`DROP SCHEMA IF EXISTS ${schema} CASCADE`)),
  }
}

describe.skipIf(HAS_POSTGRES /* every other run has it */)('PGlite', () => {
  let client: PGlite
  beforeAll(async () => {
    client = await PGlite.create()
  })
  afterAll(() => client.close())

  // The others take as long: the random operations, the largest blocks, and what closes and opens again.
  const quick = /^(?!random|elections|lifecycle|reclaim|read: (a large|any range|blocks|merged))/
  const group = byRun({ quick, full: /^/ })
  suite(async () => fixture({ client }, (statement) => client.exec(statement)), [1], group)
})

describe.runIf(HAS_POSTGRES)(`PostgreSQL${withoutPostgres}`, () => {
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

  describe('by a connection string', () => {
    suite(
      async () =>
        fixture({ connectionString: cluster.connectionString }, (statement) => pool.query(statement)),
      [1, 2],
    )
  })

  // The statements are the same; connections and notifications are not.
  describe('by a pool', () => {
    const make = async () => fixture({ client: pool }, (statement) => pool.query(statement))
    suite(make, [1], /^(notifications|shared|elections|lifecycle|random): /)
  })
})
