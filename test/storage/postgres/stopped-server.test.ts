import { describe, expect, onTestFinished, test } from 'vitest'
import { createHandler } from '../../../adapters/http/index.ts'
import { postgres } from '../../../adapters/storage/postgres/index.ts'
import { open } from '../../../src/index.ts'
import { Cluster, HAS_POSTGRES, withoutPostgres } from './cluster.ts'

describe.skipIf(!HAS_POSTGRES)(`a handler on a stopped server${withoutPostgres}`, () => {
  test('it replies with 503, and serves once the server runs', async () => {
    const cluster = await Cluster.start()
    onTestFinished(() => cluster.dispose())
    await cluster.kill()
    const { connectionString } = cluster
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
    await cluster.run()
    expect((await get()).status).toBe(200)
  })
})
