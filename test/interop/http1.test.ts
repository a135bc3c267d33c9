import { createServer } from 'node:http'
import { expect, onTestFinished, test } from 'vitest'
import { toNodeHandler } from '../../adapters/node/index.ts'
import { open } from '../../src/index.ts'
import { testStorage } from '../support/index.ts'
import { listening } from '../support/listening.ts'
import { basinOn, FETCH, S2S } from './support.ts'

/** Reads all of a stream of a server of HTTP/1.1 in a session. */
async function readAll(transport: typeof FETCH): Promise<unknown[]> {
  const hw = await open({ storage: testStorage() })
  onTestFinished(() => hw.close())
  const url = await listening(createServer(toNodeHandler(hw, { auth: 'none' })))
  const basin = await basinOn(url, transport, { retry: { maxAttempts: 1 } })
  const stream = await basin.stream('hello')
  const session = await stream.readSession({ start: { from: { seqNum: 0 } }, stop: { waitSecs: 0 } })
  const bodies: unknown[] = []
  for await (const { body } of session) bodies.push(body)
  await basin.close()
  return bodies
}

// docs/http.md "The published client" quotes the message.
test('a session of the default transport fails with `Protocol error` over HTTP/1.1', async () => {
  await expect(readAll(S2S)).rejects.toThrow('Protocol error')
})

test('a session that is forced to use fetch works over HTTP/1.1', async () => {
  expect(await readAll(FETCH)).toEqual(['hello'])
})
