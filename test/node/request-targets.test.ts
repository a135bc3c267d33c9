import { describe, expect, test } from 'vitest'
import { BASIN, exchange, Raw, request, server } from './raw.ts'

const basin = { 'svc-basin': BASIN }

describe('request targets', () => {
  test.each(['.', '..', '%2e', '%2e%2e', '%2E.', '.%2e'])(
    'rejects the stream names . and .. with bad_path: %s',
    async (name) => {
      const { port, hw } = await server()
      for (const [method, target] of [
        ['GET', `/v1/streams/${name}`],
        ['GET', `/v1/streams/${name}/records`],
        ['GET', `/v1/streams/${name}/records/tail`],
        ['DELETE', `/v1/streams/${name}`],
      ] as const) {
        const response = await exchange(port, method, target, basin)
        expect
          .soft([method, target, response.status, response.body.slice(0, 18)])
          .toEqual([method, target, 400, '{"code":"bad_path"'])
      }
      expect((await hw.basin(BASIN).listStreams()).items).toHaveLength(1)
    },
  )

  test('a dot segment does not redirect a request to another resource', async () => {
    const { port, hw } = await server()
    const response = await exchange(port, 'DELETE', `/v1/streams/..%2f/%2e%2e/%2e%2e/basins/${BASIN}`, basin)
    expect.soft(response.status).not.toBe(202)
    expect((await hw.listBasins()).items).toHaveLength(1)
  })

  test('an append to the stream `..` reaches no other stream', async () => {
    const { port, hw } = await server()
    const json = { ...basin, 'content-type': 'application/json' }
    const response = await exchange(port, 'POST', '/v1/streams/x/../s/records', json, '{"records":[{}]}')
    expect.soft(response.status).not.toBe(200)
    expect((await hw.basin(BASIN).stream('s').checkTail()).seqNum).toBe(0)
  })

  test('a fragment in the target does not truncate the name of a deleted stream', async () => {
    const { port, hw } = await server()
    const response = await exchange(port, 'DELETE', '/v1/streams/s#omething', basin)
    expect.soft(response.status).not.toBe(202)
    expect((await hw.basin(BASIN).listStreams()).items.map(({ name }) => name)).toEqual(['s'])
  })

  test('a backslash is part of the name', async () => {
    const { port, hw } = await server()
    const response = await exchange(port, 'PUT', '/v1/streams/a\\b', basin)
    expect.soft(response.status).toBe(201)
    expect((await hw.basin(BASIN).listStreams()).items.map(({ name }) => name)).toEqual(['a\\b', 's'])
  })

  test.each([
    '%01',
    '%0d%0aset-cookie:%20x=1',
    '%F0%9F%98%80',
    '%EF%BB%BFbom',
    '%22%3c',
    'a%25b',
    '%7F',
    'a%3Fb',
    'a%23b',
    '%5c',
  ])('unusual valid names work: %s', async (name) => {
    const { port, hw } = await server()
    const created = await exchange(port, 'PUT', `/v1/streams/${name}`, basin)
    expect(created.status).toBe(201)
    expect(created.headers.has('set-cookie')).toBe(false)
    const names = (await hw.basin(BASIN).listStreams()).items.map(({ name }) => name)
    expect(names).toContain(decodeURIComponent(name))
    expect(JSON.parse(Buffer.from(created.body, 'latin1').toString()).name).toBe(decodeURIComponent(name))
  })

  test.each(['%', '%2', '%zz', '%C0%AF', '%ED%A0%80', '%ff', '%F4%90%80%80'])(
    'rejects names that are not percent-encoded UTF-8 with bad_path: %s',
    async (name) => {
      const { port } = await server()
      const raw = new Raw(port)
      for (const suffix of ['', '/records', '/records/tail']) {
        raw.send(request('GET', `/v1/streams/${name}${suffix}`, basin))
        const response = await raw.response()
        expect([response.status, JSON.parse(response.body).code]).toEqual([400, 'bad_path'])
      }
    },
  )

  test.each([
    'http://user:pw@localhost/v1/basins',
    'http://localhost:99999/v1/basins',
    'ftp://localhost/v1/basins',
    'http:///v1/basins',
    'http://[::1/v1/basins',
  ])('an absolute target that is not a valid URL is rejected with 400: %s', async (target) => {
    const { port, errors } = await server()
    const response = await exchange(port, 'GET', target)
    expect.soft(response.status).toBe(400)
    expect(errors).toEqual([])
  })

  test.each([
    'a b',
    'user@localhost',
    'localhost:99999',
    'x/../y',
    '[::1',
    'localhost:',
    '%00',
    'a%2fb',
    'ａ',
    '',
  ])('a malformed host causes no internal error: %s', async (host) => {
    const { port, errors } = await server()
    const response = await exchange(port, 'GET', '/v1/basins', { host: Buffer.from(host).toString('latin1') })
    expect.soft([200, 400]).toContain(response.status)
    expect(errors).toEqual([])
  })
})
