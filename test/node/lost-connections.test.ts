import { createServer, type Http2Server } from 'node:http2'
import type { AddressInfo, Socket } from 'node:net'
import { setImmediate } from 'node:timers/promises'
import { onTestFinished, test } from 'vitest'
import { toNodeHandler } from '../../adapters/node/index.ts'
import { memory } from '../../adapters/storage/memory/index.ts'
import { open } from '../../src/index.ts'
import { http2Client, until } from './support.ts'

async function listen(server: Http2Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

// Without the check, Node writes empty frames in a loop until the process has no memory left.
test('replies that become ready when their HTTP/2 connection is lost are dropped', async () => {
  const hw = await open({ storage: memory() })
  onTestFinished(() => hw.close())
  const stream = hw.basin('my-basin').stream('s')
  await stream.append('first')
  const server = createServer(toNodeHandler(hw, { auth: 'none' }))
  let socket: Socket | undefined
  server.on('connection', (accepted) => {
    socket = accepted
  })
  const client = await http2Client(await listen(server))
  for (const [query, accept] of [
    ['tail_offset=0', 'text/event-stream'],
    ['tail_offset=0&wait=60', 'application/json'],
    ['tail_offset=0&wait=60', 'application/json'],
  ]) {
    const path = `/v1/streams/s/records?${query}`
    const request = client.request({ ':path': path, 'svc-basin': 'my-basin', accept })
    request.on('error', () => {}).resume()
  }
  await until(() => hw.stats().openReads === 3)
  // The phase of the event loop that precedes the one in which sockets close.
  await setImmediate()
  socket!.destroy()
  await stream.append('second')
  await until(() => hw.stats().openReads === 0)
  await until(() => client.destroyed)
})
