import { describe, expect, test } from 'vitest'
import { type CallOptions, startWithStream } from './support.ts'

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
