import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { toNodeListener } from '../../adapters/node/index.ts'
import { collect, http2Client, http2Fetch, RawClient, startServer, until } from './support.ts'

const secret = new Error('secret of the house')

function failingBody(error: unknown): ReadableStream<Uint8Array> {
  let pulls = 0
  return new ReadableStream({
    async pull(controller) {
      await new Promise((resolve) => setImmediate(resolve))
      if (++pulls === 3) controller.error(error)
      else controller.enqueue(new TextEncoder().encode(`part ${pulls};`))
    },
  })
}

describe('a handler that fails', () => {
  it.each([
    [
      'throws',
      () => {
        throw secret
      },
    ],
    ['rejects', () => Promise.reject(secret)],
  ])('and %s is a 500 that leaks nothing, on both protocols', async (_, handler) => {
    const { server, errors } = await startServer(handler)
    const session = await http2Client(server.url)
    const second = await http2Fetch(session, { ':path': '/' })
    const first = await fetch(server.url)
    expect(first.status).toBe(500)
    expect(first.headers.get('content-type')).toBe('application/json')
    expect(await first.json()).toEqual({ code: 'other', message: 'Internal server error' })
    expect(second.headers[':status']).toBe(500)
    expect(JSON.parse(second.body)).toEqual({ code: 'other', message: 'Internal server error' })
    expect(errors).toEqual([secret, secret])
  })

  it.each([
    ['nothing', () => undefined],
    ['a response of status 0', () => Response.error()],
    [
      'a body that was read already',
      async () => {
        const response = new Response('used')
        await response.text()
        return response
      },
    ],
    ['a body that fails at once', () => new Response(new ReadableStream({ start: (c) => c.error(secret) }))],
  ])('and returns %s is a 500', async (_, answer) => {
    const { server, errors } = await startServer(answer as () => Response)
    const response = await fetch(server.url)
    expect(response.status).toBe(500)
    expect(await response.json()).toEqual({ code: 'other', message: 'Internal server error' })
    const session = await http2Client(server.url)
    expect((await http2Fetch(session, { ':path': '/' })).headers[':status']).toBe(500)
    expect(errors).toHaveLength(2)
  })

  it('and sets a header that HTTP/1.1 cannot carry is a 500 with none of its headers', async () => {
    const headers = { 'x-first': 'fine', 'x-second': 'a\u0001b' }
    const { server, errors } = await startServer(() => new Response('x', { headers }))
    const response = await fetch(server.url)
    expect(response.status).toBe(500)
    expect(response.headers.has('x-first')).toBe(false)
    expect(errors).toHaveLength(1)
  })

  it('is reported to the console when nobody else is told', async () => {
    const log = vi.spyOn(console, 'error').mockImplementation(() => {})
    onTestFinished(() => log.mockRestore())
    const listener = toNodeListener(() => Promise.reject(secret))
    const http = createServer(listener).listen(0, '127.0.0.1')
    onTestFinished(() => void http.close())
    await once(http, 'listening')
    expect((await fetch(`http://127.0.0.1:${(http.address() as AddressInfo).port}`)).status).toBe(500)
    expect(log).toHaveBeenCalledWith(secret)
  })
})

describe('a response that breaks off', () => {
  it.each([
    ['an error', secret],
    ['undefined', undefined],
  ])('is not taken for a clean end over HTTP/1.1 (%s)', async (_, error) => {
    const { server, errors } = await startServer(() => new Response(failingBody(error)))
    const client = new RawClient(server.port)
    client.socket.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')
    await client.closed
    expect(client.received).toContain('part 2;')
    expect(client.received).not.toContain('0\r\n\r\n')
    expect(errors).toEqual([error])
    await expect(fetch(server.url).then((response) => response.text())).rejects.toThrow()
  })

  it.each([
    ['an error', secret],
    ['undefined', undefined],
  ])('is not taken for a clean end over HTTP/2 (%s)', async (_, error) => {
    const { server, errors } = await startServer(() => new Response(failingBody(error)))
    const session = await http2Client(server.url)
    const stream = session.request({ ':path': '/' })
    await expect(collect(stream)).rejects.toMatchObject({ code: 'ERR_HTTP2_STREAM_ERROR' })
    expect(errors).toEqual([error])
    expect(server.counts()).toMatchObject({ connections: 1, http2Sessions: 1 })
  })

  it('that is longer than it declared does not spoil the connection', async () => {
    const parts = ['one', 'two', 'three'].map((part) => new TextEncoder().encode(part))
    const { server, errors } = await startServer(
      () =>
        new Response(
          new ReadableStream({
            async pull(controller) {
              await new Promise((resolve) => setImmediate(resolve))
              const part = parts.shift()
              if (part) controller.enqueue(part)
              else controller.close()
            },
          }),
          { headers: { 'content-length': '4' } },
        ),
    )
    const client = new RawClient(server.port)
    client.socket.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')
    await client.closed
    expect(client.received).not.toContain('three')
    expect(errors).toHaveLength(1)
  })

  it('that is shorter than it declared is reported, and is not taken for a clean end', async () => {
    const { server, errors } = await startServer(
      () =>
        new Response(
          new ReadableStream({
            async start(controller) {
              await new Promise((resolve) => setImmediate(resolve))
              controller.enqueue(new TextEncoder().encode('one'))
              await new Promise((resolve) => setImmediate(resolve))
              controller.close()
            },
          }),
          { headers: { 'content-length': '4' } },
        ),
    )
    const client = new RawClient(server.port)
    client.socket.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')
    await client.closed
    expect(errors).toMatchObject([{ code: 'ERR_HTTP_CONTENT_LENGTH_MISMATCH' }])
  })

  it('frees its request', async () => {
    const { server } = await startServer(() => new Response(failingBody(secret)))
    await fetch(server.url)
      .then((response) => response.text())
      .catch(() => {})
    await until(() => server.counts().requests === 0 && server.counts().connections === 0)
    expect(server.counts()).toEqual({ connections: 0, http2Sessions: 0, requests: 0 })
  })
})
