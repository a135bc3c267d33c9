import { createServer } from 'node:http2'
import type { Socket } from 'node:net'
import { setImmediate } from 'node:timers/promises'
import { test } from 'vitest'
import { toNodeHandler } from '../../adapters/node/index.ts'
import { listening } from '../support/listening.ts'
import { BASIN, server } from './raw.ts'
import { http2Client, until } from './support.ts'

// Without the check, Node writes empty frames in a loop until the process has no memory left.
test('replies that become ready when their HTTP/2 connection is lost are dropped', async () => {
  const { hw } = await server()
  const stream = hw.basin(BASIN).stream('s')
  await stream.append('first')
  const http = createServer(toNodeHandler(hw, { auth: 'none' }))
  let socket: Socket | undefined
  http.on('connection', (accepted) => {
    socket = accepted
  })
  const client = await http2Client(await listening(http))
  for (const [query, accept] of [
    ['tail_offset=0', 'text/event-stream'],
    ['tail_offset=0&wait=60', 'application/json'],
    ['tail_offset=0&wait=60', 'application/json'],
  ]) {
    const path = `/v1/streams/s/records?${query}`
    const request = client.request({ ':path': path, 'svc-basin': BASIN, accept })
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
