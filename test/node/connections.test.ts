import { gunzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { BASIN, Raw, request, server } from './raw.ts'
import { http2Client, until } from './support.ts'

const basin = { 'svc-basin': BASIN }
const json = { ...basin, 'content-type': 'application/json' }
const R = '/v1/streams/s/records'

describe('compression of responses', () => {
  test.each([
    ['gzip', 'gzip'],
    ['GZIP;q=0.5', 'gzip'],
    ['gzip;q=0', undefined],
    ['br', undefined],
    ['identity', undefined],
    ['x-gzip', 'gzip'],
    ['gzip;q=0, br', undefined],
    ['', undefined],
    ['deflate, gzip;q=1.0, *;q=0.5', 'gzip'],
  ])('follows accept-encoding %s', async (accept, coding) => {
    const { port, hw } = await server()
    await hw.basin(BASIN).stream('s').append('x'.repeat(5000))
    for (const form of ['application/json', 'application/protobuf', 'text/event-stream']) {
      const raw = new Raw(port)
      raw.send(
        request('GET', `${R}?seq_num=0&count=1`, { ...basin, accept: form, 'accept-encoding': accept }),
      )
      const response = await raw.response()
      const expected =
        form === 'text/event-stream'
          ? undefined
          : coding === 'gzip'
            ? accept === 'x-gzip'
              ? response.headers.get('content-encoding')
              : 'gzip'
            : undefined
      expect([form, response.headers.get('content-encoding')]).toEqual([form, expected])
      const body = expected ? gunzipSync(Buffer.from(response.body, 'latin1')).toString() : response.body
      expect(body).toContain('x'.repeat(5000))
      if (form !== 'text/event-stream') expect(response.headers.get('vary')).toContain('accept-encoding')
    }
  })
})

describe('clients that vanish', () => {
  test('leave nothing open after 1,000 sessions of all kinds over HTTP/1.1 and HTTP/2', async () => {
    const { port, hw, node, url, errors } = await server()
    const resources = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
    const before = resources()
    const raws: Raw[] = []
    for (let i = 0; i < 300; i++) {
      const raw = new Raw(port)
      raws.push(raw)
      const [target, headers] = [
        [R, { ...basin, accept: 'text/event-stream' }],
        [`${R}?wait=60`, basin],
        [R, { ...basin, 'content-type': 's2s/proto' }],
      ][i % 3] as [string, Record<string, string>]
      raw.send(request('GET', target, headers))
    }
    const session = await http2Client(url)
    const streams = Array.from({ length: 700 }, (_, i) => {
      const stream = session.request(
        i % 2 === 0
          ? { ':path': R, ...basin, 'content-type': 's2s/proto' }
          : { ':method': 'POST', ':path': R, ...basin, 'content-type': 's2s/proto' },
        { endStream: i % 2 === 0 },
      )
      stream.on('error', () => {})
      stream.resume()
      return stream
    })
    await until(() => node.counts().requests === 1000)
    await until(() => Object.values(hw.stats()).some((n) => n >= 650))
    for (const raw of raws) raw.socket.destroy()
    for (const [i, stream] of streams.entries()) if (i % 4 < 2) stream.close(8)
    await until(() => node.counts().requests <= 350)
    session.destroy()
    await until(() => node.counts().requests === 0 && node.counts().connections === 0)
    await until(() => Object.entries(hw.stats()).every(([name, n]) => name === 'cachedStreams' || !n))
    expect(resources() - before).toBeLessThanOrEqual(2)
    expect(errors).toEqual([])
  })

  test('that never read do not make the server buffer what they miss', async () => {
    const { port, hw, node } = await server()
    const raws = Array.from({ length: 50 }, () => {
      const raw = new Raw(port)
      raw.socket.pause()
      raw.send(request('GET', `${R}?seq_num=0`, { ...basin, accept: 'text/event-stream' }))
      return raw
    })
    await until(() => node.counts().requests === 50)
    const stream = hw.basin(BASIN).stream('s')
    const before = process.memoryUsage()
    for (let i = 0; i < 100; i++) await stream.append('x'.repeat(1_000_000))
    const after = process.memoryUsage()
    // The log itself is 100 MB.
    expect(after.rss - before.rss).toBeLessThan(500e6)
    for (const raw of raws) raw.socket.destroy()
    await until(() => node.counts().requests === 0)
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
