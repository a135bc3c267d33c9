import { expect, it } from 'vitest'
import { open } from '../../../../src/index.ts'
import { letPass, openEngine, testStorage } from '../../../support/index.ts'

const scope = { ops: ['read'] } as const

it('expired tokens are listed for a day', async () => {
  const { hw, clock } = await openEngine({ storage: testStorage() })
  const after = (hours: number) => new Date(hw.now() + hours * 3_600_000)
  for (let i = 0; i < 150; i++) {
    await hw.issueAccessToken({ id: `short ${i}`, scope, expiresAt: after(1) })
  }
  await hw.issueAccessToken({ id: 'longer', scope, expiresAt: after(10) })
  await hw.issueAccessToken({ id: 'for ever', scope })
  const count = async () => (await hw.listAccessTokens()).items.length
  await letPass(clock, '24h')
  expect(await count()).toBe(152)
  await letPass(clock, '2h')
  await clock.advance('1m')
  expect((await hw.listAccessTokens()).items.map(({ id }) => id)).toEqual(['for ever', 'longer'])
  await letPass(clock, '11h')
  expect((await hw.listAccessTokens()).items.map(({ id }) => id)).toEqual(['for ever'])
  await hw.close()
})

it('a token that was issued again under the same id is kept', async () => {
  const storage = testStorage()
  const { hw, clock } = await openEngine({ storage })
  await hw.issueAccessToken({ id: 'a', scope, expiresAt: new Date(hw.now() + 1000) })
  await clock.advance('2s')
  await hw.issueAccessToken({ id: 'a', scope })
  const other = await open({ storage, clock })
  await letPass(clock, '27h')
  expect((await hw.listAccessTokens()).items.map(({ id }) => id)).toEqual(['a'])
  await other.close()
  await hw.close()
})
