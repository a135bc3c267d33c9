import { ServerResponse } from 'node:http'
import type { Http2ServerRequest } from 'node:http2'
import { expect, test, vi } from 'vitest'
import type { Reply } from '../../adapters/http/reply.ts'
import { http2Client, startServer } from './support.ts'

test.each([
  ['is sent after the events that it caused, over HTTP/2', 8, true],
  ['does not wait for events of many followers', 9, false],
])('a reply %s', async (_, followers, isAfter) => {
  const send: (() => void)[] = []
  let sentBytes = () => 0
  const { server } = await startServer(async ({ method, source }) => {
    if (method === 'POST') {
      for (const each of send.splice(0)) each()
      // As an append is acknowledged: in the same turn, after its followers were called.
      for (let i = 0; i < 20; i++) await Promise.resolve()
      return { status: 200, body: '' }
    }
    const { session } = (source as Http2ServerRequest).stream
    sentBytes = () => session!.socket.bytesWritten
    return { status: 200, body: events(send) as Reply['body'] }
  })
  const session = await http2Client(server.url)
  for (let i = 0; i < followers; i++) session.request({ ':path': '/' }).resume()
  await vi.waitFor(() => expect(send).toHaveLength(followers))
  // Until the headers of all are sent.
  await new Promise((resolve) => setTimeout(resolve, 20))
  const before = sentBytes()
  let after: number | undefined
  const end = vi.spyOn(ServerResponse.prototype, 'end').mockImplementationOnce(function (
    this: ServerResponse,
    ...args: unknown[]
  ) {
    after = sentBytes()
    return ServerResponse.prototype.end.apply(this, args as never)
  })
  await fetch(server.url, { method: 'POST' })
  end.mockRestore()
  expect(after! > before).toBe(isAfter)
})

/** A body of one chunk, which `send` gets the function for that sends it. */
async function* events(send: (() => void)[]): AsyncIterable<Uint8Array> {
  await new Promise<void>((resolve) => send.push(resolve))
  yield new Uint8Array(100)
  await new Promise(() => {})
}
