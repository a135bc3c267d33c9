import { createServer } from 'node:http'
import type { Socket } from 'node:net'
import { describe, expect, test } from 'vitest'
import { toNodeHandler } from '../../adapters/node/index.ts'
import { testClock } from '../support/index.ts'
import { listening } from '../support/listening.ts'
import { BASIN, Raw, request, server } from './raw.ts'
import { http2Client, until } from './support.ts'

const basin = { 'svc-basin': BASIN }
const R = '/v1/streams/s/records'

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
    const http = createServer(toNodeHandler(hw, { auth: 'none' }))
    http.on('connection', (socket: Socket) => accepted.push(socket))
    const port = Number(new URL(await listening(http)).port)
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
  test('ignores Upgrade to h2c and websocket', async () => {
    const { port } = await server()
    for (const upgrade of ['h2c', 'websocket']) {
      const raw = new Raw(port).send(
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
