import { expect, test } from 'vitest'
import { BASIN, exchange, server } from './raw.ts'
import { http2Client, http2Fetch } from './support.ts'

const basin = { 'svc-basin': BASIN }
const json = { ...basin, 'content-type': 'application/json' }

async function start() {
  const { hw, port, url, errors } = await server()
  const streams = async () => (await hw.basin(BASIN).listStreams()).items.map(({ name }) => name)
  return { hw, port, url, errors, streams }
}

test.each(['.', '..', '%2e', '%2e%2e', '%2E.', '.%2e'])(
  'rejects the stream names . and .. with bad_path: %s',
  async (name) => {
    const { port, streams } = await start()
    for (const [method, target] of [
      ['GET', `/v1/streams/${name}`],
      ['GET', `/v1/streams/${name}/records`],
      ['GET', `/v1/streams/${name}/records/tail`],
      ['DELETE', `/v1/streams/${name}`],
    ] as const) {
      const { status, body } = await exchange(port, method, target, basin)
      expect([target, status, JSON.parse(body).code]).toEqual([target, 400, 'bad_path'])
    }
    expect(await streams()).toEqual(['s'])
  },
)

test.each([
  ['a dot segment', 'DELETE', `/v1/streams/..%2f/%2e%2e/%2e%2e/basins/${BASIN}`],
  ['the name `..`', 'POST', '/v1/streams/x/../s/records'],
  ['a fragment', 'DELETE', '/v1/streams/s#omething'],
])('%s leads to no other resource', async (_, method, target) => {
  const { port, hw, streams } = await start()
  const body = method === 'POST' ? '{"records":[{}]}' : ''
  const { status } = await exchange(port, method, target, json, body)
  expect([200, 202]).not.toContain(status)
  expect([await streams(), (await hw.listBasins()).items.length]).toEqual([['s'], 1])
  expect((await hw.basin(BASIN).stream('s').checkTail()).seqNum).toBe(0)
})

test('HTTP/2 accepts raw UTF-8 and backslashes in :path, but no dot segments and fragments', async () => {
  const { url, streams, errors } = await start()
  const session = await http2Client(url)
  for (const [path, status] of [
    ['/v1/streams/é', 201],
    ['/v1/streams/x/../s', 400],
    ['/v1/streams/q#x', 400],
    ['/v1/streams/b\\c', 201],
  ] as const) {
    const { headers } = await http2Fetch(session, { ':method': 'PUT', ':path': path, ...basin })
    expect([path, headers[':status']]).toEqual([path, status])
  }
  expect(await streams()).not.toContain('q')
  expect(errors).toEqual([])
})

test.each([
  ...['%01', '%0d%0aset-cookie:%20x=1', '%F0%9F%98%80', '%EF%BB%BFbom', '%22%3c', 'a%25b', '%7F'],
  ...['a%3Fb', 'a%23b', '%5c', 'a\\b'],
])('unusual valid names work: %s', async (name) => {
  const { port, streams } = await start()
  const created = await exchange(port, 'PUT', `/v1/streams/${name}`, basin)
  expect([created.status, created.headers.has('set-cookie')]).toEqual([201, false])
  expect(await streams()).toContain(decodeURIComponent(name))
  expect(JSON.parse(Buffer.from(created.body, 'latin1').toString()).name).toBe(decodeURIComponent(name))
})

test.each([
  'http://user:pw@localhost/v1/basins',
  'http://localhost:99999/v1/basins',
  'ftp://localhost/v1/basins',
  'http:///v1/basins',
  'http://[::1/v1/basins',
])('an absolute target that is not a valid URL is rejected with bad_path: %s', async (target) => {
  const { port, errors } = await start()
  const { status, body } = await exchange(port, 'GET', target)
  expect([status, JSON.parse(body).code]).toEqual([400, 'bad_path'])
  expect(errors).toEqual([])
})

test.each([
  ...['a b', 'a/b', 'u:p@localhost', 'localhost:99999', 'x/../y', '[::1', 'localhost:'],
  ...['%00', 'a%2fb', 'ａ', ''],
])('a malformed host causes no internal error: %s', async (host) => {
  const { port, errors } = await start()
  const headers = { host: Buffer.from(host).toString('latin1') }
  const { status, body } = await exchange(port, 'GET', '/v1/basins', headers)
  expect(['200 undefined', '400 bad_header', '421 misdirected_request']).toContain(
    `${status} ${JSON.parse(body).code}`,
  )
  expect(errors).toEqual([])
})
