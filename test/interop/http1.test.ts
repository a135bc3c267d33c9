import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { toNodeHandler } from '../../adapters/node/index.ts'
import { type Engine, open } from '../../src/index.ts'
import { testStorage } from '../support/index.ts'
import { strings } from './records.ts'
import { basinOn, FETCH, S2S } from './support.ts'

const server = createServer((req, res) => handler(req, res))
let hw: Engine
let handler: ReturnType<typeof toNodeHandler>

beforeAll(async () => {
  hw = await open({ storage: testStorage() })
  handler = toNodeHandler(hw, { auth: 'none' })
  server.listen(0)
  await once(server, 'listening')
})
afterAll(async () => {
  server.closeAllConnections()
  await Promise.all([new Promise((resolve) => server.close(resolve)), hw.close()])
})

const url = () => `http://127.0.0.1:${(server.address() as AddressInfo).port}`

/** Reads all of a stream in a session. */
async function readAll(transport: typeof FETCH): Promise<unknown[]> {
  const basin = await basinOn(url(), transport, { retry: { maxAttempts: 1 } })
  const stream = await basin.stream()
  await stream.append(strings('hello'))
  const session = await stream.readSession({ start: { from: { seqNum: 0 } }, stop: { waitSecs: 0 } })
  const bodies: unknown[] = []
  for await (const { body } of session) bodies.push(body)
  await basin.close()
  return bodies
}

// docs/frameworks.md "The published client" quotes the message.
test('a session of the default transport fails with `Protocol error` over HTTP/1.1', async () => {
  await expect(readAll(S2S)).rejects.toThrow('Protocol error')
})

test('a session that is forced to use fetch works over HTTP/1.1', async () => {
  expect(await readAll(FETCH)).toEqual(['hello'])
})
