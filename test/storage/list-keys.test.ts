import fc from 'fast-check'
import { expect, it } from 'vitest'
import { utf8 } from '../../src/model/bytes.ts'
import { keyBounds, randomVersion } from '../../src/storage/commit-plan.ts'

const compare = (a: Uint8Array, b: Uint8Array) => Buffer.compare(a, b)

it('select the keys with the prefix after the given key', () => {
  const key = fc.string({ unit: fc.constantFrom('a', 'b', '\0', '\uffff', '\u{10000}'), maxLength: 3 })
  fc.assert(
    fc.property(fc.array(key), key, key, (keys, prefix, after) => {
      const bounds = keyBounds({ prefix, after, limit: 100 })
      const selected = keys.filter((one) => {
        if (bounds === undefined) return false
        const order = compare(utf8(one), bounds.from)
        return (bounds.isFromExcluded ? order > 0 : order >= 0) && compare(utf8(one), bounds.to) < 0
      })
      const isAfter = (one: string) => compare(utf8(one), utf8(after)) > 0
      expect(selected).toEqual(keys.filter((one) => one.startsWith(prefix) && isAfter(one)))
    }),
  )
})

it('select nothing with a limit of 0', () => {
  expect(keyBounds({ prefix: '', after: '', limit: 0 })).toBeUndefined()
})

it('a random version is a safe integer, and another one each time', () => {
  const versions = Array.from({ length: 1_000 }, randomVersion)
  expect(versions.every((version) => Number.isSafeInteger(version) && version >= 0)).toBe(true)
  expect(new Set(versions).size).toBe(1_000)
})
