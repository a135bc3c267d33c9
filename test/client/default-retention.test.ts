import { expect, it } from 'vitest'
import { connect } from '../../adapters/client/index.ts'
import { createHandler } from '../../adapters/http/index.ts'
import { open } from '../../src/index.ts'
import { testStorage } from '../support/index.ts'

it('a client leaves the retention to the server with the option `defaultRetention`', async () => {
  const engine = await open({ storage: testStorage() })
  const fetch = createHandler(engine, { auth: 'none', retention: { ageSeconds: 60 } })
  const hw = await connect({ url: 'http://localhost', fetch, defaultRetention: 'server' })
  // A request token is sent for names of 8 characters or more.
  for (const name of ['a', 'basin-of-tests']) await hw.createBasin(name)
  await hw.ensureBasin('ensured')
  for (const name of ['a', 'basin-of-tests', 'ensured']) {
    await hw.basin(name).createStream('s')
    const { retentionPolicy } = await engine.basin(name).stream('s').config()
    expect(retentionPolicy).toEqual({ ageSeconds: 60 })
  }
  await hw.close()
  await engine.close()
})
