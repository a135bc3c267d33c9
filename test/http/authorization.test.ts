import { describe, expect, test } from 'vitest'
import type { AuthorizationTarget } from '../../adapters/http/index.ts'
import { HeadwaterError } from '../../src/index.ts'
import { errorOf, RECORDS, startService, startWithStream, tailOf, Upload } from './support.ts'

describe('authorisation', () => {
  test('without `open` and `authorize` nothing is permitted but health and preflights', async () => {
    const service = await startService()
    const call = service.with({ open: false })
    const refused = await call('GET', '/v1/basins')
    expect(refused.headers.get('www-authenticate')).toBe('Bearer')
    expect(await errorOf(refused)).toMatchObject({ status: 401, code: 'authn' })
    expect((await call('POST', RECORDS, { json: {} })).status).toBe(401)
    expect((await call('GET', '/health')).status).toBe(200)
    expect((await call('OPTIONS', '/v1/basins')).status).toBe(204)
  })

  test('the hook decides before the body is read and before anything is decoded', async () => {
    const service = await startWithStream()
    const call = service.with({
      open: true,
      authorize: () => {
        throw new HeadwaterError('permission_denied', 'no')
      },
    })
    const upload = new Upload()
    const headers = { 'content-type': 'application/json' }
    expect(await errorOf(await call('POST', RECORDS, { body: upload.body, headers }))).toMatchObject({
      status: 403,
      code: 'permission_denied',
    })
    expect(upload.body.locked).toBe(false)
    expect((await call('GET', '/v1/streams/%ff')).status).toBe(403)
    expect((await call('POST', RECORDS, { json: {}, headers: { 'content-encoding': 'br' } })).status).toBe(
      403,
    )
    expect(await tailOf(service)).toBe(0)
  })

  test('the hook is told what the request is about', async () => {
    const targets: AuthorizationTarget[] = []
    const service = await startWithStream()
    const call = service.with({
      authorize: async (request, target) => {
        expect(request).toBeInstanceOf(Request)
        targets.push(target)
      },
    })
    await call('GET', '/v1/streams/a%2Fb/records')
    await call('PUT', '/v1/basins/some-basin')
    await call('GET', '/v1/streams', { basin: null, origin: 'http://test-basin.localhost:1234' })
    await call('GET', '/v1/streams/%ff', { basin: 'NO' })
    await call('GET', '/health')
    expect(targets).toEqual([
      { method: 'GET', route: '/v1/streams/{stream}/records', basin: 'test-basin', stream: 'a/b' },
      { method: 'PUT', route: '/v1/basins/{basin}', basin: 'some-basin', stream: undefined },
      { method: 'GET', route: '/v1/streams', basin: 'test-basin', stream: undefined },
      { method: 'GET', route: '/v1/streams/{stream}', basin: undefined, stream: undefined },
    ])
  })

  test('a hook that fails refuses, and its error is not told', async () => {
    const service = await startService()
    const failure = new TypeError('database password is hunter2')
    const call = service.with({ authorize: () => Promise.reject(failure) })
    const error = await errorOf(await call('GET', '/v1/basins'))
    expect(error).toEqual({ status: 500, code: 'other', message: 'internal error' })
    expect(service.errors).toEqual([failure])
  })

  test('a log that throws does not fail the request further', async () => {
    const service = await startService()
    const call = service.with({
      authorize: () => Promise.reject(new Error('x')),
      onError: () => {
        throw new Error('log')
      },
    })
    expect((await call('GET', '/v1/basins')).status).toBe(500)
  })
})
