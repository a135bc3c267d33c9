import fc from 'fast-check'
import { expect, it } from 'vitest'
import { prefixedName, prefixedQuery, shownName } from '../../src/core/permission.ts'
import { rejection } from '../model/rejection.ts'

const TENANT = { streamPrefix: 'tenant/' }

it('adds the prefix to names and removes it again', () => {
  expect(prefixedName(TENANT, 'a')).toBe('tenant/a')
  expect(shownName(TENANT, 'tenant/a')).toBe('a')
  fc.assert(
    fc.property(fc.string({ maxLength: 20 }), fc.string({ maxLength: 20 }), (streamPrefix, name) => {
      expect(shownName({ streamPrefix }, prefixedName({ streamPrefix }, name))).toBe(name)
    }),
  )
})

it.each([
  [{}, { prefix: 'tenant/', startAfter: 'tenant/' }],
  [{ prefix: 'a' }, { prefix: 'tenant/a', startAfter: 'tenant/' }],
  [{ startAfter: 'a' }, { prefix: 'tenant/', startAfter: 'tenant/a' }],
  [
    { startAfter: '', limit: 3 },
    { prefix: 'tenant/', startAfter: 'tenant/', limit: 3 },
  ],
])('the list %j means %j', (query, expected) => {
  expect(prefixedQuery(TENANT, query)).toEqual(expected)
  expect(prefixedQuery({ streamPrefix: '' }, query)).toBe(query)
})

it.each([
  ['name', 'stream', (text: string) => prefixedName(TENANT, text)],
  ['prefix', 'prefix', (text: string) => prefixedQuery(TENANT, { prefix: text })],
  ['start-after', 'startAfter', (text: string) => prefixedQuery(TENANT, { startAfter: text })],
])('a %s has at most 512 bytes, including the prefix', (role, field, use) => {
  expect(rejection(() => use(`${'é'.repeat(252)}x`))).toBeUndefined()
  const error = rejection(() => use(`${'é'.repeat(252)}xx`))
  expect([error?.code, error?.field]).toEqual(['invalid', field])
  expect(error?.message).toContain(`stream ${role} must not exceed 512 bytes`)
})
