import { expect, it } from 'vitest'
import { createHandler } from '../../adapters/http/index.ts'
import { EVERYTHING, openWithTokens } from '../engine/access/support.ts'
import { gated } from '../engine/gated-storage.ts'
import { testStorage } from '../test-storage.ts'
import { inputFrame } from './inputs.ts'
import { BodyReader, Upload } from './support.ts'

it('a body that is uploaded while its token is revoked is not appended', async () => {
  const { hw, clock } = await openWithTokens()
  const token = await hw.issueAccessToken({ id: 't', scope: EVERYTHING })
  let go!: () => void
  const gate = new Promise<void>((r) => (go = r))
  const body = new ReadableStream<Uint8Array>({
    async pull(c) {
      await gate
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
  go()
  expect((await answer).status).toBe(401)
})

it('an HTTP append session on a storage that is stuck ends within a second of the revocation', async () => {
  const storage = gated(testStorage())
  const { hw, clock } = await openWithTokens({ storage })
  const token = await hw.issueAccessToken({ id: 't', scope: EVERYTHING })
  const upload = new Upload()
  const response = await createHandler(hw)(
    new Request('http://x/v1/streams/stream/records', {
      method: 'POST',
      body: upload.body,
      duplex: 'half',
      headers: { authorization: `Bearer ${token}`, 'svc-basin': 'basin', 'content-type': 'svcs/proto' },
    } as RequestInit),
  )
  const reader = new BodyReader(response)
  storage.holding = true
  upload.write(inputFrame(['x']))
  await clock.settle()
  await hw.revokeAccessToken('t')
  await clock.advance('30s')
  let ended = false
  void reader.ended.then(() => (ended = true))
  await clock.settle()
  const was = ended
  storage.holding = false
  storage.release()
  await clock.settle()
  expect(was).toBe(true)
})

it('with tokens from cookies, a strange page may not read answers with credentials by default', async () => {
  const { hw } = await openWithTokens()
  const token = await hw.issueAccessToken({ id: 't', scope: EVERYTHING })
  const handler = createHandler(hw, { tokenOf: (r) => /t=([^;]+)/.exec(r.headers.get('cookie') ?? '')?.[1] })
  const response = await handler(
    new Request('http://x/v1/basins', { headers: { cookie: `t=${token}`, origin: 'https://evil.example' } }),
  )
  expect(response.headers.get('access-control-allow-credentials')).toBe(null)
})

it('two Authorization headers are refused', async () => {
  const { hw } = await openWithTokens()
  const token = await hw.issueAccessToken({ id: 't', scope: EVERYTHING })
  const handler = createHandler(hw)
  const headers = new Headers()
  headers.append('authorization', `Bearer ${token}`)
  headers.append('authorization', `Bearer ${token}`)
  expect((await handler(new Request('http://x/v1/basins', { headers }))).status).toBe(401)
})
