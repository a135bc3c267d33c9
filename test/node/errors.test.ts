import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { toNodeHandler } from '../../adapters/node/index.ts'
import { open } from '../../src/index.ts'
import { testStorage } from '../support/index.ts'
import {
  collect,
  http2Client,
  http2Fetch,
  laterChunks,
  ok,
  RawClient,
  startServer,
  until,
} from './support.ts'

const secret = new Error('secret of the house')
const INTERNAL_ERROR = { code: 'other', message: 'internal error' }
const failingBody = (error: unknown) => ok(laterChunks(['part 1;', 'part 2;'], { error }))

describe('a handler that fails', () => {
  it.each([
    [
      'throws',
      () => {
        throw secret
      },
    ],
    ['rejects', () => Promise.reject(secret)],
  ])('and %s results in a 500 without details, on both protocols', async (_, handler) => {
    const { server, errors } = await startServer(handler)
    const session = await http2Client(server.url)
    const second = await http2Fetch(session, { ':path': '/' })
    const first = await fetch(server.url)
    expect(first.status).toBe(500)
    expect(first.headers.get('content-type')).toBe('application/json')
    expect(await first.json()).toEqual(INTERNAL_ERROR)
    expect(second.headers[':status']).toBe(500)
    expect(JSON.parse(second.body)).toEqual(INTERNAL_ERROR)
    expect(errors).toEqual([secret, secret])
  })

  it('and sets a header that HTTP/1.1 cannot carry results in a 500 with none of its headers', async () => {
    const headers = { 'x-first': 'fine', 'x-second': 'a\u0001b' }
    const { server, errors } = await startServer(() => ({ status: 200, headers, body: 'x' }))
    const response = await fetch(server.url)
    expect(response.status).toBe(500)
    expect(response.headers.has('x-first')).toBe(false)
    expect(errors).toHaveLength(1)
  })

  it('is reported to the console by default', async () => {
    const log = vi.spyOn(console, 'error').mockImplementation(() => {})
    onTestFinished(() => log.mockRestore())
    const hw = await open({ storage: testStorage() })
    onTestFinished(() => hw.close())
    const handler = toNodeHandler(hw, { getToken: () => Promise.reject(secret) })
    const http = createServer(handler).listen(0, '127.0.0.1')
    onTestFinished(() => void http.close())
    await once(http, 'listening')
    const { port } = http.address() as AddressInfo
    expect((await fetch(`http://127.0.0.1:${port}/v1/basins`)).status).toBe(500)
    expect(log).toHaveBeenCalledWith(secret)
  })
})

describe('a response that is cut off', () => {
  it.each([
    ['an error', secret],
    ['undefined', undefined],
  ])('does not end cleanly over HTTP/1.1 (%s)', async (_, error) => {
    const { server, errors } = await startServer(() => failingBody(error))
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
  ])('does not end cleanly over HTTP/2 (%s)', async (_, error) => {
    const { server, errors } = await startServer(() => failingBody(error))
    const session = await http2Client(server.url)
    const stream = session.request({ ':path': '/' })
    await expect(collect(stream)).rejects.toMatchObject({ code: 'ERR_HTTP2_STREAM_ERROR' })
    expect(errors).toEqual([error])
    expect(server.counts()).toMatchObject({ connections: 1, http2Sessions: 1 })
  })

  it('releases its request', async () => {
    const { server } = await startServer(() => failingBody(secret))
    await fetch(server.url)
      .then((response) => response.text())
      .catch(() => {})
    await until(() => server.counts().requests === 0 && server.counts().connections === 0)
    expect(server.counts()).toEqual({ connections: 0, http2Sessions: 0, requests: 0 })
  })
})
