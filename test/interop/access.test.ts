import { type S2, S2Error } from '@s2-dev/streamstore'
import { beforeAll, describe, expect, it } from 'vitest'
import { virtualClock } from '../../adapters/testing/index.ts'
import { strings } from './records.ts'
import { clientOf, freshName, serviceOfFile } from './support.ts'

const clock = virtualClock()
const service = await serviceOfFile({ demandsTokens: true, clock })
const { url } = service.server
const ROOT_TOKEN = 'the-root-token-of-a-test'

let root: S2
beforeAll(async () => {
  await service.hw.setRootToken(ROOT_TOKEN)
  root = clientOf(url, {}, ROOT_TOKEN)
})

async function refusal(call: Promise<unknown>): Promise<[number | undefined, string | undefined]> {
  const error: unknown = await call.then(
    () => undefined,
    (reason) => reason,
  )
  expect(error).toBeInstanceOf(S2Error)
  const { status, code } = error as S2Error
  return [status, code]
}

async function tenantBasin(): Promise<string> {
  const basin = freshName('basin')
  await root.basins.create({ basin })
  for (const stream of ['tenant/orders', 'tenant/letters', 'other/orders']) {
    await root.basin(basin).streams.create({ stream })
    await root
      .basin(basin)
      .stream(stream)
      .append(strings(`first of ${stream}`))
  }
  return basin
}

describe('a read-only, auto-prefixed, expiring token that a client issues', () => {
  it('permits exactly its scope', { tags: ['slow'] }, async () => {
    const name = await tenantBasin()
    const expiresAt = new Date(clock.now() + 600_000)
    const { accessToken } = await root.accessTokens.issue({
      id: 'tenant/reader',
      expiresAt,
      autoPrefixStreams: true,
      scope: {
        basins: { exact: name },
        streams: { prefix: 'tenant/' },
        opGroups: { basin: { read: true }, stream: { read: true } },
      },
    })
    const listed = await root.accessTokens.list({ prefix: 'tenant/' })
    expect(listed.accessTokens).toMatchObject([{ id: 'tenant/reader', expiresAt, autoPrefixStreams: true }])

    const reader = clientOf(url, {}, accessToken)
    const basin = reader.basin(name)
    const { streams } = await basin.streams.list()
    expect(streams.map((info) => info.name)).toEqual(['letters', 'orders'])
    expect((await basin.streams.list({ prefix: 'o' })).streams.map((info) => info.name)).toEqual(['orders'])
    expect((await basin.streams.list({ startAfter: 'letters' })).streams.map((info) => info.name)).toEqual([
      'orders',
    ])
    const orders = basin.stream('orders')
    expect((await orders.checkTail()).tail.seqNum).toBe(1)
    const batch = await orders.read({ start: { from: { seqNum: 0 } } })
    expect(batch.records.map(({ body }) => body)).toEqual(['first of tenant/orders'])
    expect((await basin.streams.getConfig({ stream: 'orders' })).storageClass).toBe('express')

    const denied = [403, 'permission_denied']
    expect(await refusal(orders.append(strings('forged')))).toEqual(denied)
    expect(await refusal(basin.streams.create({ stream: 'more' }))).toEqual(denied)
    expect(await refusal(basin.streams.delete({ stream: 'orders' }))).toEqual(denied)
    expect(await refusal(basin.streams.ensure({ stream: 'orders' }))).toEqual(denied)
    expect(await refusal(reader.basins.list())).toEqual(denied)
    expect(await refusal(reader.accessTokens.list())).toEqual(denied)
    expect(await refusal(reader.accessTokens.issue({ id: 'x', scope: { ops: ['read'] } }))).toEqual(denied)
    expect(await refusal(reader.locations.list())).toEqual(denied)
    expect(await refusal(reader.basin('no-such-basin').streams.list())).toEqual(denied)
    expect(await refusal(basin.stream('other/orders').checkTail())).toEqual([404, 'stream_not_found'])
    expect(await refusal(basin.stream('x'.repeat(506)).checkTail())).toEqual([422, 'invalid'])

    await root.accessTokens.revoke({ id: 'tenant/reader' })
    expect(await refusal(orders.checkTail())).toEqual([401, 'authn'])
    expect(await refusal(root.accessTokens.revoke({ id: 'tenant/reader' }))).toEqual([
      404,
      'access_token_not_found',
    ])
  })

  it.each(['fetch', 's2s'] as const)(
    'and its session by %s ends when the token is revoked',
    async (transport) => {
      const name = await tenantBasin()
      const id = freshName('token')
      const { accessToken } = await root.accessTokens.issue({
        id,
        scope: { basins: { exact: name }, streams: { prefix: '' }, ops: ['read', 'check-tail'] },
      })
      const reader = clientOf(url, { retry: { maxAttempts: 1 } }, accessToken)
      const stream = reader.basin(name).stream('tenant/orders', { forceTransport: transport })
      const session = await stream.readSession({ start: { from: { seqNum: 0 } } })
      const bodies: unknown[] = []
      const following = (async () => {
        for await (const { body } of session) {
          bodies.push(body)
          await root.accessTokens.revoke({ id })
        }
      })()
      await expect(following).rejects.toBeInstanceOf(S2Error)
      expect(bodies).toEqual(['first of tenant/orders'])
      await stream.close()
    },
  )
})

it('lists one location, the default', async () => {
  const here = { name: 'aws:us-east-1', isPrivate: false }
  expect(await root.locations.list()).toMatchObject([here])
  expect(await root.locations.getDefault()).toMatchObject(here)
  expect(await root.locations.setDefault({ location: 'aws:us-east-1' })).toMatchObject(here)
  expect(await refusal(root.locations.setDefault({ location: 'aws:eu-north-1' }))).toEqual([422, 'invalid'])
})
