import { createServer } from 'node:http'
import { describe, expect, it } from 'vitest'
import { toNodeHandler } from '../../adapters/node/index.ts'
import { listening } from '../support/listening.ts'
import { BASIN, exchange, Raw, server } from './raw.ts'
import { http2Client, http2Fetch } from './support.ts'

const TARGET = '/v1/basins'
const TOKEN = 'the-root-token-of-a-test'

async function statusOf(port: number, host: string, target = TARGET): Promise<number> {
  return (await exchange(port, 'GET', target, { host })).status
}

describe('a loopback address without authentication', () => {
  it.each([
    ['localhost', 200],
    ['LOCALHOST:80', 200],
    ['localhost.', 200],
    [`${BASIN}.localhost:8787`, 200],
    ['127.0.0.1:8787', 200],
    ['[::1]:8787', 200],
    ['192.168.1.7', 200],
    ['2130706433', 200],
    ['evil.example', 421],
    ['EVIL.example:8787', 421],
    ['localhost.evil.example', 421],
    ['evillocalhost', 421],
    ['127.0.0.1.evil.example', 421],
    ['127.0.0.1.nip.example', 421],
    ['localhost,evil.example', 400],
  ])('responds to the host %s with %i', async (host, status) => {
    const { port, hw } = await server()
    expect(await statusOf(port, host)).toBe(status)
    if (status === 200) return
    for (const target of ['/health', '/', '/nowhere']) {
      expect(await statusOf(port, host, target)).toBe(status)
    }
    expect((await exchange(port, 'PUT', '/v1/basins/new', { host })).status).toBe(status)
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

  it('looks at the host of an absolute target, and at the authority of HTTP/2', async () => {
    const { port, url } = await server()
    expect(await statusOf(port, 'localhost', 'http://evil.example/v1/basins')).toBe(421)
    expect(await statusOf(port, 'evil.example', 'http://localhost/v1/basins')).toBe(200)
    const session = await http2Client(url)
    for (const [authority, status] of [
      ['evil.example', 421],
      ['localhost', 200],
    ] as const) {
      const { headers } = await http2Fetch(session, { ':path': TARGET, ':authority': authority })
      expect(headers[':status']).toBe(status)
    }
  })

  it('accepts the hosts of the options', async () => {
    const { port } = await server({ allowedHosts: ['Streams.Internal'], basinDomains: ['b.example'] })
    expect(await statusOf(port, 'streams.internal:8787')).toBe(200)
    expect(await statusOf(port, `${BASIN}.b.example`)).toBe(200)
    expect(await statusOf(port, 'more.streams.internal')).toBe(421)
  })

  it('rejects other hosts in an app that mounts the handler', async () => {
    const { hw } = await server()
    const { port } = new URL(await listening(createServer(toNodeHandler(hw, { auth: 'none' }))))
    expect(await statusOf(Number(port), 'evil.example')).toBe(421)
    expect(await statusOf(Number(port), 'localhost')).toBe(200)
  })
})

it.each([
  ['any host', undefined, 200],
  ['only those of the options', [], 421],
])('a server with authentication accepts %s', async (_, allowedHosts, status) => {
  const { hw, port } = await server({ auth: 'token', ...(allowedHosts && { allowedHosts }) })
  await hw.setRootToken(TOKEN)
  const headers = { host: 'streams.example', authorization: `Bearer ${TOKEN}` }
  expect((await exchange(port, 'GET', TARGET, headers)).status).toBe(status)
})

describe('a request with two hosts', () => {
  const rejected = (problem: string) => ({
    code: 'bad_header',
    message: `Invalid header \`host\`: ${problem}`,
  })

  it.each([
    ['evil.example', 'localhost'],
    ['localhost', 'evil.example'],
    ['localhost', 'localhost'],
  ])('is rejected over HTTP/1.1: %s, %s', async (first, second) => {
    const { port } = await server({ auth: 'token' })
    const raw = new Raw(port).send(`GET /health HTTP/1.1\r\nHost: ${first}\r\nhOST: ${second}\r\n\r\n`)
    const { status, body } = await raw.response()
    expect([status, JSON.parse(body)]).toEqual([400, rejected('the request has more than one')])
  })

  it('is rejected over HTTP/2 if `host` differs from `:authority`', async () => {
    const { url } = await server({ auth: 'token' })
    const session = await http2Client(url)
    const send = (host: string) =>
      http2Fetch(session, { ':path': '/health', ':authority': 'localhost', host })
    const { headers, body } = await send('evil.example')
    expect([headers[':status'], JSON.parse(body)]).toEqual([400, rejected('differs from `:authority`')])
    expect((await send('LocalHost')).headers[':status']).toBe(200)
  })
})
