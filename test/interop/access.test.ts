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

describe('a token that a client issues', () => {
  it('has the scope, the prefix and the end that were asked for', async () => {
    const name = await tenantBasin()
    const expiresAt = new Date(clock.now() + 600_000)
    const scope = {
      basins: { exact: name },
      streams: { prefix: 'tenant/' },
      opGroups: { basin: { read: true }, stream: { read: true } },
    } as const
    const id = 'tenant/reader'
    const { accessToken } = await root.accessTokens.issue({ id, expiresAt, autoPrefixStreams: true, scope })
    const listed = await root.accessTokens.list({ prefix: 'tenant/' })
    expect(listed.accessTokens).toMatchObject([{ id, expiresAt, autoPrefixStreams: true, scope }])

    const reader = clientOf(url, {}, accessToken)
    const { streams } = await reader.basin(name).streams.list({ startAfter: 'letters' })
    expect(streams.map((info) => info.name)).toEqual(['orders'])
    const orders = reader.basin(name).stream('orders')
    const batch = await orders.read({ start: { from: { seqNum: 0 } } })
    expect(batch.records.map(({ body }) => body)).toEqual(['first of tenant/orders'])
    const denied = [403, 'permission_denied']
    expect(await refusal(orders.append(strings('forged')))).toEqual(denied)
    expect(await refusal(reader.accessTokens.list())).toEqual(denied)
    expect(await refusal(reader.basin(name).stream('other/orders').checkTail())).toEqual([
      404,
      'stream_not_found',
    ])

    await root.accessTokens.revoke({ id })
    expect(await refusal(orders.checkTail())).toEqual([401, 'authn'])
    expect(await refusal(root.accessTokens.revoke({ id }))).toEqual([404, 'access_token_not_found'])
  })

  it.each(['fetch', 's2s'] as const)('ends a session by %s when it is revoked', async (transport) => {
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
  })
})
