import { expect, it } from 'vitest'
import { createHandler } from '../../adapters/http/index.ts'
import { EVERYTHING, openWithTokens } from '../engine/service/tokens/support.ts'
import { deferred } from '../support/index.ts'

it('a body that is uploaded while its token is revoked is not appended', async () => {
  const { hw, clock } = await openWithTokens()
  const token = await hw.issueAccessToken({ id: 't', scope: EVERYTHING })
  const gate = deferred()
  const body = new ReadableStream<Uint8Array>({
    async pull(c) {
      await gate.promise
      c.enqueue(new TextEncoder().encode('{"records":[{"body":"x"}]}'))
      c.close()
    },
  })
  const answer = createHandler(hw)(
    new Request('http://x/v1/streams/stream/records', {
      method: 'POST',
      body,
      duplex: 'half',
      headers: { authorization: `Bearer ${token}`, 'svc-basin': 'basin', 'content-type': 'application/json' },
    } as RequestInit),
  )
  await clock.settle()
  await hw.revokeAccessToken('t')
  gate.resolve()
  expect((await answer).status).toBe(401)
})

it('with tokens from cookies, pages of other origins may not read responses with credentials by default', async () => {
  const { hw } = await openWithTokens()
  const token = await hw.issueAccessToken({ id: 't', scope: EVERYTHING })
  const handler = createHandler(hw, { getToken: (r) => /t=([^;]+)/.exec(r.header('cookie') ?? '')?.[1] })
  const response = await handler(
    new Request('http://x/v1/basins', { headers: { cookie: `t=${token}`, origin: 'https://evil.example' } }),
  )
  expect(response.headers.get('access-control-allow-credentials')).toBe(null)
})

it('two Authorization headers are rejected', async () => {
  const { hw } = await openWithTokens()
  const token = await hw.issueAccessToken({ id: 't', scope: EVERYTHING })
  const handler = createHandler(hw)
  const headers = new Headers()
  headers.append('authorization', `Bearer ${token}`)
  headers.append('authorization', `Bearer ${token}`)
  expect((await handler(new Request('http://x/v1/basins', { headers }))).status).toBe(401)
})

it('a revocation ends a slow upload before its body is complete', async () => {
  const { hw } = await openWithTokens()
  const token = await hw.issueAccessToken({ id: 't', scope: EVERYTHING })
  const body = new ReadableStream<Uint8Array>({
    start: (controller) => controller.enqueue(new TextEncoder().encode('{"records":[')),
  })
  const answer = createHandler(hw)(
    new Request('http://x/v1/streams/stream/records', {
      method: 'POST',
      body,
      duplex: 'half',
      headers: { authorization: `Bearer ${token}`, 'svc-basin': 'basin', 'content-type': 'application/json' },
    } as RequestInit),
  )
  let status: number | undefined
  void answer.then((response) => {
    status = response.status
  })
  await hw.revokeAccessToken('t')
  // The token is checked again while the body is still open, at the latest when the upload counts as slow.
  await expect.poll(() => status).toBe(401)
  await hw.close()
})
