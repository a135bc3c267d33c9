import { expect, test } from 'vitest'
import { errorOf, startService } from './support.ts'

const HERE = { name: 'aws:us-east-1', is_private: false }
const THERE = { name: 'cellar.rack-2', is_private: true }
const TWO = { locations: ['aws:us-east-1', { name: 'cellar.rack-2', isPrivate: true }] }

test('there is one location unless others are configured', async () => {
  const { call } = await startService()
  expect(await (await call('GET', '/v1/locations')).json()).toEqual([HERE])
  expect(await (await call('GET', '/v1/locations/default')).json()).toEqual(HERE)
})

test('basins created without a location get the chosen default location', async () => {
  const service = await startService({}, TWO)
  expect(await (await service.call('GET', '/v1/locations')).json()).toEqual([HERE, THERE])
  const chosen = await service.call('PUT', '/v1/locations/default', { json: 'cellar.rack-2' })
  expect([chosen.status, await chosen.json()]).toEqual([200, THERE])
  expect(await (await service.call('GET', '/v1/locations/default')).json()).toEqual(THERE)
  const scopeOf = async (name: string, body?: object) =>
    (await (await service.call('PUT', `/v1/basins/${name}`, body && { json: body })).json()).scope
  expect(await scopeOf('no-place')).toBe('cellar.rack-2')
  expect(await scopeOf('a-scope', { scope: 'aws:us-east-1' })).toBe('aws:us-east-1')
  expect(await scopeOf('a-location', { location: 'aws:us-east-1' })).toBe('aws:us-east-1')
  expect(await scopeOf('no-place')).toBe('cellar.rack-2')
})

test.each([
  ['an unknown location', '"aws:eu-north-1"', 422, 'invalid'],
  ['a malformed location name', '"a b"', 400, 'bad_json'],
  ['a name that is too long', JSON.stringify('x'.repeat(65)), 400, 'bad_json'],
  ['an empty name', '""', 400, 'bad_json'],
  ['no string', '{"name":"aws:us-east-1"}', 400, 'bad_json'],
  ['nothing', '', 400, 'bad_json'],
])('rejects %s', async (_, body, status, code) => {
  const { call } = await startService()
  const headers = { 'content-type': 'application/json' }
  const response = await call('PUT', '/v1/locations/default', { body, headers })
  expect(await errorOf(response)).toMatchObject({ status, code })
  expect(await (await call('GET', '/v1/locations/default')).json()).toEqual(HERE)
})

test.each([
  ['none', []],
  ['two of one name', ['a', 'a']],
  ['a name that is none', ['a b']],
])('open rejects %s', async (_, locations) => {
  await expect(startService({}, { locations })).rejects.toThrow(expect.objectContaining({ code: 'invalid' }))
})
