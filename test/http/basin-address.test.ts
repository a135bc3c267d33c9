import { describe, expect, test } from 'vitest'
import { type CallOptions, errorOf, startWithStream } from './support.ts'

const PATH = '/v1/streams/s/records/tail'

describe('the basin of a request', () => {
  test.each<[string, CallOptions]>([
    ['header', { basin: 'test-basin' }],
    ['header with the other word', { basin: null, headers: { 's2-basin': 'test-basin' } }],
    ['both words, the same', { headers: { 's2-basin': 'test-basin' } }],
    ['subdomain', { basin: null, origin: 'http://test-basin.localhost:8080' }],
    ['subdomain in capitals, with a final dot', { basin: null, origin: 'http://Test-Basin.LOCALHOST.:8080' }],
    ['both, the same', { origin: 'http://test-basin.localhost' }],
    ['header on a host below the domain that is no basin', { origin: 'http://a.b.localhost' }],
    ['header on another host', { origin: 'http://other.example' }],
  ])('is given by %s', async (_, options) => {
    const { call } = await startWithStream()
    expect((await call('GET', PATH, options)).status).toBe(200)
  })

  test.each<[string, CallOptions, string]>([
    ['neither', { basin: null }, 'Missing header `svc-basin`'],
    [
      'neither, in the other word',
      { basin: null, headers: { 's2-format': 'raw' } },
      'Missing header `s2-basin`',
    ],
    [
      'neither, in a session of the other word',
      { basin: null, headers: { 'content-type': 's2s/proto' } },
      'Missing header `s2-basin`',
    ],
    [
      'neither, with any header of the other word',
      { basin: null, headers: { 's2-request-id': '7', 's22-x': '1' } },
      'Missing header `s2-basin`',
    ],
    [
      'neither, with headers of no word',
      { basin: null, headers: { 's22-x': '1', s2: '1' } },
      'Missing header `svc-basin`',
    ],
    ['a bad name', { basin: 'NO' }, 'Invalid header `svc-basin`: basin name must begin with'],
    ['an empty name', { basin: '' }, 'Invalid header `svc-basin`: basin name must not be empty'],
    ['not UTF-8', { basin: null, headers: { 's2-basin': 'b\xff' } }, 'Invalid header `s2-basin`: '],
    [
      'a host two levels below the domain',
      { basin: null, origin: 'http://x.test-basin.localhost' },
      'Missing header',
    ],
    ['a bad subdomain', { basin: null, origin: 'http://bad_name.localhost' }, 'Invalid header `host`'],
    [
      'two that differ',
      { origin: 'http://other-basin.localhost' },
      'the host is that of basin `other-basin`',
    ],
    ['two words that differ', { headers: { 's2-basin': 'other-basin' } }, 'differ'],
  ])('%s: 400 bad_header', async (_, options, message) => {
    const { call } = await startWithStream()
    const error = await errorOf(await call('GET', PATH, options))
    expect(error).toMatchObject({ status: 400, code: 'bad_header' })
    expect(error.message).toContain(message)
  })

  test('may be in the host name of other domains', async () => {
    const service = await startWithStream()
    const call = service.with({ basinDomains: ['b.example.com', 'Streams.Example.ORG'] })
    const at = async (host: string) =>
      (await call('GET', PATH, { basin: null, origin: `https://${host}` })).status
    expect(await at('test-basin.b.example.com')).toBe(200)
    expect(await at('test-basin.streams.example.org')).toBe(200)
    expect(await at('test-basin.localhost')).toBe(400)
    expect(await at('b.example.com')).toBe(400)
    expect(await at('test-basin.xb.example.com')).toBe(400)
  })

  test('is not required by account requests', async () => {
    const { call } = await startWithStream()
    expect((await call('GET', '/v1/basins', { origin: 'http://NO-.localhost' })).status).toBe(200)
  })

  test('is the default one if the request names none', async () => {
    const service = await startWithStream()
    const call = service.with({ basin: 'test-basin' })
    expect((await call('GET', PATH, { basin: null })).status).toBe(200)
    expect((await call('GET', PATH, { basin: 'other-basin' })).status).toBe(404)
    expect((await call('GET', PATH, { basin: null, origin: 'http://other-basin.localhost' })).status).toBe(
      404,
    )
  })
})
