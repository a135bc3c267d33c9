import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { toNodeHandler } from '../../adapters/node/index.ts'
import { BASIN, exchange, Raw, server } from './raw.ts'
import { http2Client, http2Fetch } from './support.ts'

const TARGET = '/v1/basins'
const TOKEN = 'the-root-token-of-a-test'

function statusOf(port: number, host: string, target = TARGET): Promise<number> {
  return exchange(port, 'GET', target, { host }).then(({ status }) => status)
}

describe('a loopback address without authentication', () => {
  it.each([
    'localhost',
    'LOCALHOST:80',
    'localhost.',
    `${BASIN}.localhost:8787`,
    '127.0.0.1:8787',
    '[::1]:8787',
    '192.168.1.7',
    '2130706433',
  ])('accepts the host %s', async (host) => {
    const { port } = await server()
    expect(await statusOf(port, host)).toBe(200)
  })

  it.each([
    'evil.example',
    'EVIL.example:8787',
    'localhost.evil.example',
    'evillocalhost',
    '127.0.0.1.evil.example',
    '127.0.0.1.nip.example',
    'localhost,evil.example',
  ])('rejects the host %s', async (host) => {
    const { port, hw } = await server()
    const expected = host.includes(',') ? 400 : 421
    for (const target of [TARGET, '/health', '/', '/nowhere']) {
      expect(await statusOf(port, host, target)).toBe(expected)
    }
    expect((await exchange(port, 'PUT', '/v1/basins/new', { host })).status).toBe(expected)
    expect((await hw.listBasins()).items.map(({ name }) => name)).toEqual([BASIN])
  })

  it('names the remedy', async () => {
    const { port } = await server()
    const { body } = await exchange(port, 'GET', TARGET, { host: 'Evil.Example:80' })
    expect(JSON.parse(body)).toEqual({
      code: 'misdirected_request',
      message:
        'this server does not serve the host `evil.example`; allow it with the option `allowedHosts`, or' +
        ' `--allowed-host` of `headwater serve`',
    })
  })

  it('rejects an absolute target with another host', async () => {
    const { port } = await server()
    expect(await statusOf(port, 'localhost', 'http://evil.example/v1/basins')).toBe(421)
    expect(await statusOf(port, 'evil.example', 'http://localhost/v1/basins')).toBe(200)
  })

  it('rejects another host over HTTP/2', async () => {
    const { url } = await server()
    const session = await http2Client(url)
    const status = async (authority: string) =>
      (await http2Fetch(session, { ':path': TARGET, ':authority': authority })).headers[':status']
    expect(await status('evil.example')).toBe(421)
    expect(await status('localhost')).toBe(200)
  })

  it('accepts the hosts of the options', async () => {
    const { port } = await server({ allowedHosts: ['Streams.Internal'], basinDomains: ['b.example'] })
    expect(await statusOf(port, 'streams.internal:8787')).toBe(200)
    expect(await statusOf(port, `${BASIN}.b.example`)).toBe(200)
    expect(await statusOf(port, 'more.streams.internal')).toBe(421)
  })

  it('rejects other hosts in an app that mounts the handler', async () => {
    const { hw } = await server()
    const app = createServer(toNodeHandler(hw, { auth: 'none' }))
    await new Promise<void>((resolve) => app.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void app.close())
    const { port } = app.address() as AddressInfo
    expect(await statusOf(port, 'evil.example')).toBe(421)
    expect(await statusOf(port, 'localhost')).toBe(200)
  })
})

it('a server with authentication accepts any host, unless the options list some', async () => {
  const anyHost = await server({ auth: 'token' })
  await anyHost.hw.setRootToken(TOKEN)
  const headers = { host: 'streams.example', authorization: `Bearer ${TOKEN}` }
  expect((await exchange(anyHost.port, 'GET', TARGET, headers)).status).toBe(200)
  const listed = await server({ auth: 'token', allowedHosts: [] })
  await listed.hw.setRootToken(TOKEN)
  expect((await exchange(listed.port, 'GET', TARGET, headers)).status).toBe(421)
})

describe('a request with two hosts', () => {
  it.each([
    ['evil.example', 'localhost'],
    ['localhost', 'evil.example'],
    ['localhost', 'localhost'],
  ])('is rejected over HTTP/1.1: %s, %s', async (first, second) => {
    const { port } = await server({ auth: 'token' })
    const raw = new Raw(port).send(`GET /health HTTP/1.1\r\nHost: ${first}\r\nhOST: ${second}\r\n\r\n`)
    const { status, body } = await raw.response()
    expect([status, JSON.parse(body)]).toEqual([
      400,
      { code: 'bad_header', message: 'Invalid header `host`: the request has more than one' },
    ])
  })

  it('is rejected over HTTP/2 if `host` differs from `:authority`', async () => {
    const { url } = await server({ auth: 'token' })
    const session = await http2Client(url)
    const send = (host: string) =>
      http2Fetch(session, { ':path': '/health', ':authority': 'localhost', host })
    const { headers, body } = await send('evil.example')
    expect([headers[':status'], JSON.parse(body).message]).toEqual([
      400,
      'Invalid header `host`: differs from `:authority`',
    ])
    expect((await send('LocalHost')).headers[':status']).toBe(200)
  })
})
