import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { gunzipSync } from 'node:zlib'
import { describe, expect, onTestFinished, test } from 'vitest'
import { toNodeHandler } from '../../adapters/node/index.ts'
import { testClock } from '../support/index.ts'
import { BASIN, exchange, Raw, request, server } from './raw.ts'
import { http2Client, until } from './support.ts'

const basin = { 'svc-basin': BASIN }
const json = { ...basin, 'content-type': 'application/json' }
const R = '/v1/streams/s/records'

test('responses are compressed as the request accepts, event streams never', async () => {
  const { port, hw } = await server()
  await hw.basin(BASIN).stream('s').append('x'.repeat(5000))
  for (const [accept, coding] of [
    ['application/json', 'gzip'],
    ['application/protobuf', 'gzip'],
    ['text/event-stream', undefined],
  ] as const) {
    const headers = { ...basin, accept, 'accept-encoding': 'deflate, gzip;q=1.0, *;q=0.5' }
    const { headers: received, body } = await exchange(port, 'GET', `${R}?seq_num=0&count=1`, headers)
    expect([accept, received.get('content-encoding')]).toEqual([accept, coding])
    const text = coding === undefined ? body : gunzipSync(Buffer.from(body, 'latin1')).toString()
    expect(text).toContain('x'.repeat(5000))
  }
})

describe('clients that vanish', () => {
  test('leave nothing open after sessions of all kinds over HTTP/1.1 and HTTP/2', {
    tags: ['slow'],
  }, async () => {
    const clock = testClock()
    const { port, hw, node, url, errors } = await server({}, { clock })
    const timers = clock.pending
    const raws = Array.from({ length: 30 }, (_, i) => {
      const [target, headers] = [
        [R, { ...basin, accept: 'text/event-stream' }],
        [`${R}?wait=60`, basin],
        [R, { ...basin, 'content-type': 's2s/proto' }],
      ][i % 3] as [string, Record<string, string>]
      return new Raw(port).send(request('GET', target, headers))
    })
    const session = await http2Client(url)
    const streams = Array.from({ length: 70 }, (_, i) => {
      const method = i % 2 === 0 ? 'GET' : 'POST'
      const headers = { ':method': method, ':path': R, ...basin, 'content-type': 's2s/proto' }
      const stream = session.request(headers, { endStream: method === 'GET' })
      stream.on('error', () => {}).resume()
      return stream
    })
    await until(() => node.counts().requests === 100)
    await until(() => hw.stats().openSessions === 100 && hw.stats().waitingReads === 65)
    for (const raw of raws) raw.socket.destroy()
    for (const [i, stream] of streams.entries()) if (i % 4 < 2) stream.close(8)
    await until(() => node.counts().requests === 34)
    session.destroy()
    await until(() => node.counts().requests === 0 && node.counts().connections === 0)
    await until(() => Object.entries(hw.stats()).every(([name, n]) => name === 'cachedStreams' || !n))
    expect(clock.pending).toBe(timers)
    expect(errors).toEqual([])
  })

  test('that never read do not make the server buffer what they miss', async () => {
    const { hw } = await server()
    const accepted: Socket[] = []
    const http = createServer(toNodeHandler(hw, { auth: 'none' })).listen(0, '127.0.0.1')
    http.on('connection', (socket: Socket) => accepted.push(socket))
    onTestFinished(() => {
      http.closeAllConnections()
      http.close()
    })
    await once(http, 'listening')
    const { port } = http.address() as AddressInfo
    const stream = hw.basin(BASIN).stream('s')
    const headers = { ...basin, accept: 'text/event-stream' }
    for (let i = 0; i < 4; i++) {
      const raw = new Raw(port).send(request('GET', `${R}?seq_num=0`, headers))
      // It follows the stream, and does not read from then on.
      await raw.until('event: ping')
      raw.socket.pause()
    }
    for (let i = 0; i < 24; i++) await stream.append('x'.repeat(1_000_000))
    await until(() => accepted.every(({ writableNeedDrain }) => writableNeedDrain))
    const held = accepted.map(({ writableLength }) => writableLength)
    // Each misses over 20 MB, less what the kernel holds.
    for (const bytes of held) expect(bytes).toBeLessThan(4 * 1024 * 1024)
    expect(hw.stats().readBufferBytes).toBeLessThan(16 * 1024 * 1024)
  })
})

describe('HTTP/1.1', () => {
  test('supports Expect: 100-continue', async () => {
    const { port } = await server()
    const raw = new Raw(port)
    raw.send(request('POST', R, { ...json, expect: '100-continue', 'content-length': '16' }))
    expect((await raw.response()).status).toBe(100)
    raw.send('{"records":[{}]}')
    expect((await raw.response()).status).toBe(200)
  })

  test('responds to an append whose client half-closes after it', async () => {
    const { port } = await server()
    const raw = new Raw(port)
    raw.socket.end(Buffer.from(request('POST', R, json, '{"records":[{}]}')))
    expect((await raw.response()).status).toBe(200)
  })

  test('sends a complete SSE response to HTTP/1.0 and closes the connection', async () => {
    const { port } = await server()
    const raw = new Raw(port)
    raw.send(request('POST', R, json, '{"records":[{"body":"x"}]}'))
    await raw.response()
    const old = new Raw(port)
    old.send(
      `GET ${R}?seq_num=0&count=1 HTTP/1.0\r\nsvc-basin: ${BASIN}\r\naccept: text/event-stream\r\n\r\n`,
    )
    expect(await old.until('[DONE]\n\n')).toContain('event: batch')
    await until(() => old.ended)
  })

  test('ignores Upgrade to h2c and websocket', async () => {
    const { port } = await server()
    for (const upgrade of ['h2c', 'websocket']) {
      const raw = new Raw(port)
      raw.send(
        request('GET', `${R}/tail`, {
          ...basin,
          connection: 'Upgrade, HTTP2-Settings',
          upgrade,
          'http2-settings': 'AAMAAABkAAQAAP__',
        }),
      )
      expect((await raw.response()).status).toBe(200)
    }
  })
})
