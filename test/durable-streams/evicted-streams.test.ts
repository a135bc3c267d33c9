// @module-tag slow

import { expect, it } from 'vitest'
import { createDurableStreamsHandler } from '../../adapters/durable-streams/index.ts'
import { open } from '../../src/index.ts'
import { openEngine, testClock, testStorage } from '../support/index.ts'

const url = (i: number) => `http://localhost/v1/stream/s/${i}`

it('checks appends by the content type of the stream that another engine has created meanwhile', async () => {
  const storage = testStorage()
  const clock = testClock({ now: 1_000_000 })
  const { hw } = await openEngine({ storage, clock, limits: { cachedStreams: 40 } })
  const other = await open({ storage, clock })
  const handler = createDurableStreamsHandler(hw, { basin: 'basin', auth: 'none' })
  const others = createDurableStreamsHandler(other, { basin: 'basin', auth: 'none' })
  const send = (to: typeof handler, method: string, i: number, type: string, body?: string) =>
    to(new Request(url(i), { method, headers: { 'content-type': type }, ...(body && { body }) }))
  for (let i = 0; i < 36; i++) await send(handler, 'PUT', i, 'text/plain')
  for (let number = 0; number < 3; number++) {
    for (let i = 0; i < 36; i++) {
      expect((await send(handler, 'POST', i, 'text/plain', 'x')).ok).toBe(true)
    }
  }
  expect((await others(new Request(url(3), { method: 'DELETE' }))).ok).toBe(true)
  expect((await send(others, 'PUT', 3, 'application/json')).status).toBe(201)
  await clock.settle()
  expect((await send(handler, 'POST', 3, 'text/plain', 'not json')).status).toBe(409)
  const read = await others(new Request(url(3)))
  expect(await read.text()).toBe('[]')
  await other.close()
  await hw.close()
})
