import { once } from 'node:events'
import { createServer, type Http2ServerRequest } from 'node:http2'
import type { Socket } from 'node:net'
import { setImmediate } from 'node:timers/promises'
import { expect, onTestFinished, test, vi } from 'vitest'
import { toNodeHandler } from '../../adapters/node/index.ts'
import { HTTP2_PROBE_MS } from '../../adapters/node/limits.ts'
import { listening } from '../support/listening.ts'
import { frame, OPENING, requestFrame } from './http2-frames.ts'
import { BASIN, Raw, server } from './raw.ts'
import { http2Client, startServer, trackedHandler, until } from './support.ts'

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

test('HTTP/2 connections that Node no longer reads are closed, and those whose client only waits are not', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  onTestFinished(() => void vi.useRealTimers())
  const { handler } = trackedHandler()
  const bytesRead: (() => number)[] = []
  const { server } = await startServer((exchange) => {
    const { socket } = (exchange.source as Http2ServerRequest).stream.session!
    bytesRead.push(() => socket.bytesRead)
    return handler(exchange)
  })

  const waiting = [await http2Client(server.url), await http2Client(server.url)]
  for (const client of waiting) await once(client.request({ ':path': '/live' }), 'response')
  // Leaves after its open requests, and Node sends it no PING.
  waiting[0]!.goaway(0)
  for (const kind of ['/pending', '/live']) {
    const malformed = frame('windowUpdate', 0, 0, [1, 2, 3])
    const raw = new Raw(server.port).send(
      Buffer.concat([
        OPENING,
        requestFrame(1, 'GET', kind),
        frame('goAway', 0, 0, Array(8).fill(0)),
        malformed,
      ]),
    )
    await until(() => raw.received !== '')
    raw.socket.destroy()
  }

  for (let count = 0; count < 4; count++) {
    const before = waiting.map((_, index) => bytesRead[index]!())
    await vi.advanceTimersByTimeAsync(HTTP2_PROBE_MS)
    await until(() => before.every((bytes, index) => bytesRead[index]!() > bytes))
  }
  await until(() => server.counts().connections === waiting.length)
  expect(server.counts()).toEqual({ connections: 2, http2Sessions: 2, requests: 2 })
})
