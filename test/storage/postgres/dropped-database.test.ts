// @module-tag slow

import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { createHandler } from '../../../adapters/http/index.ts'
import { postgres } from '../../../adapters/storage/postgres/index.ts'
import { type Engine, HeadwaterError, open } from '../../../src/index.ts'
import { codeOf, readAll } from '../../support/index.ts'
import { Cluster, HAS_POSTGRES, withoutPostgres } from './cluster.ts'

describe.runIf(HAS_POSTGRES)(`a database that is dropped under the engine${withoutPostgres}`, () => {
  let cluster: Cluster
  beforeAll(async () => {
    cluster = await Cluster.start()
  })
  afterAll(() => cluster.dispose())

  async function opened(database: string) {
    const connectionString = cluster.connectionString.replace(/postgres$/, database)
    const hw = await open({ storage: postgres({ connectionString }) })
    onTestFinished(() => hw.close())
    return { hw, stream: hw.basin('basin').stream('stream') }
  }

  /** The code, the underlying reason, and whether anything may have been stored. */
  function failureOf(call: Promise<unknown>): Promise<string> {
    return call.then(
      () => 'ok',
      (error) => {
        if (!HeadwaterError.is(error)) return String(error)
        return `${error.code} ${error.mayHaveEffects} ${(error.cause as Error).message}`
      },
    )
  }

  function health(hw: Engine): Promise<number> {
    const handler = createHandler(hw, { auth: 'none', onError: () => {} })
    return handler(new Request('http://localhost/health')).then(({ status }) => status)
  }

  test('fails requests with the reason at once, and is empty when it is back', async () => {
    await cluster.query('CREATE DATABASE app')
    const { hw, stream } = await opened('app')
    await stream.append('old')
    let ended = ''
    const follow = async () => {
      for await (const _ of stream.follow({ seqNum: 0 }));
    }
    const following = follow().catch((error) => {
      ended = codeOf(error)
    })
    await cluster.query('DROP DATABASE app WITH (FORCE)')
    const reason = /^storage false PostgreSQL failed: database "app" does not exist \(3D000\)$/
    // A connection that was cut may have committed.
    await failureOf(stream.append('x'))
    expect(await failureOf(stream.append('x'))).toMatch(reason)
    expect(await failureOf(stream.readBatch({ seqNum: 0 }))).toMatch(reason)
    expect(await failureOf(hw.listBasins())).toMatch(reason)
    expect(await health(hw)).toBe(503)
    await cluster.query('CREATE DATABASE app')
    const missing =
      /^storage false PostgreSQL failed: relation .* does not exist \(42P01\): restore the tables/
    expect(await failureOf(stream.append('x'))).toMatch(missing)
    expect(await health(hw)).toBe(503)
    const other = await opened('app')
    await other.stream.append('new')
    await stream.append('newer')
    expect(await readAll(stream)).toEqual(['new', 'newer'])
    await vi.waitUntil(() => ended !== '')
    await following
    // It may also have looked while there was no database.
    expect(['stream_deleted', 'storage']).toContain(ended)
    expect(await health(hw)).toBe(200)
    // Both engines listen for changes.
    const listening = `SELECT 1 FROM pg_stat_activity WHERE datname = 'app' AND query ~ '^LISTEN|pg_notify'`
    await vi.waitUntil(async () => (await cluster.query(listening)).length === 2)
  })

  test('or whose schema is dropped, fails requests with the reason', async () => {
    const missing = /^storage false PostgreSQL failed: .*: restore the tables/
    await cluster.query('CREATE DATABASE other')
    const { hw, stream } = await opened('other')
    await stream.append('old')
    await cluster.query('DROP SCHEMA headwater CASCADE', 'other')
    expect(await failureOf(stream.append('x'))).toMatch(missing)
    expect(await failureOf(stream.checkTail())).toMatch(missing)
    expect(await failureOf(hw.listBasins())).toMatch(missing)
    expect(await health(hw)).toBe(503)
  })
})
