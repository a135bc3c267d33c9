import { describe, expect, test } from 'vitest'
import type { CatalogChange } from '../../src/storage/contract.ts'
import { StorageFailure } from '../../src/storage/errors.ts'
import { testStorage, wrapped } from '../support/index.ts'
import { asked, FLOWS, json, T } from './resource-flows.ts'
import { BASIN, errorOf, startService, startWithStream } from './support.ts'

test.each(Object.entries(FLOWS))('%s', async (_, steps) => {
  const { call } = await startService()
  for (const [request, options, status, body, result = null] of steps) {
    const [method, path] = request.split(' ') as [string, string]
    const response = await call(method, path, options)
    const text = await response.text()
    expect([request, response.status, response.headers.get('svc-provision-result')]).toEqual([
      request,
      status,
      result,
    ])
    if (body === undefined) expect(text).toBe('')
    else expect(JSON.parse(text)).toMatchObject(body as object)
  }
})

test('a reply has the header prefix of its request', async () => {
  const { call } = await startService()
  const created = await call('POST', '/v1/basins', json({ basin: 'some-basin' }, { 's2-request-token': 'x' }))
  expect(created.headers.get('s2-provision-result')).toBe('created')
  expect(created.headers.has('svc-provision-result')).toBe(false)
})

test('request tokens have at most 36 bytes of UTF-8', async () => {
  const { call } = await startService()
  const statusWith = async (basin: string, token: string) =>
    (await call('POST', '/v1/basins', json({ basin }, asked(Buffer.from(token).toString('latin1'))))).status
  expect(await statusWith('first-basin', 'é'.repeat(18))).toBe(201)
  expect(await statusWith('other-basin', 'é'.repeat(19))).toBe(400)
})

describe('a basin that is being deleted', () => {
  test('can be read, and is neither changed nor created', async () => {
    const isLast = (change: CatalogChange) => change.kind === 'delete' && change.collection === 'basins'
    const storage = wrapped(testStorage(), {}, (real) => ({
      commit: (changes) =>
        changes.some(isLast)
          ? Promise.reject(new StorageFailure('io', 'not yet', { nothingWritten: true }))
          : real.commit(changes),
    }))
    const { call } = await startWithStream({}, { storage })
    const deletions = [call('DELETE', `/v1/basins/${BASIN}`), call('DELETE', `/v1/basins/${BASIN}`)]
    for (const deletion of deletions) expect((await deletion).status).toBe(202)
    expect((await call('GET', `/v1/basins/${BASIN}`)).status).toBe(200)
    expect(await (await call('GET', '/v1/basins')).json()).toMatchObject({
      basins: [{ name: BASIN, state: 'deleting', deleted_at: '2025-01-01T00:00:00Z' }],
    })
    for (const [method, path, body] of [
      ['PUT', `/v1/basins/${BASIN}`, {}],
      ['PATCH', `/v1/basins/${BASIN}`, {}],
      ['POST', '/v1/basins', { basin: BASIN }],
      ['PUT', T, {}],
    ] as const) {
      expect(await errorOf(await call(method, path, json(body)))).toMatchObject({
        status: 409,
        code: 'basin_deletion_pending',
      })
    }
  })
})
