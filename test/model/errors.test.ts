import { describe, expect, it } from 'vitest'
import { HeadwaterError, invalid } from '../../src/model/errors.ts'

describe('an error', () => {
  it('exposes its details', () => {
    const cause = new Error('below')
    const tail = { seqNum: 3, timestamp: 7 }
    const details = { field: 'seqNum', tail, fencingToken: '', seqNum: 0, cause }
    expect(new HeadwaterError('range_not_satisfiable', 'beyond', details)).toMatchObject(details)
    expect(invalid('why', 'age')).toMatchObject({
      code: 'invalid',
      status: 422,
      message: 'why',
      field: 'age',
    })
    expect(invalid('why').field).toBeUndefined()
  })

  it('has no `cause` property unless one is given', () => {
    expect('cause' in new HeadwaterError('storage', 'lost')).toBe(false)
  })

  it('is recognized by its brand, also from another copy of the package', () => {
    const copy = new Error('from a copy')
    Object.defineProperty(copy, Symbol.for('headwater.error'), { value: true })
    expect(HeadwaterError.is(copy)).toBe(true)
    expect(HeadwaterError.is(invalid('why'))).toBe(true)
    for (const other of [new Error('why'), undefined, null, 'invalid', { code: 'invalid' }]) {
      expect(HeadwaterError.is(other)).toBe(false)
    }
  })

  it('does not expose its brand as an enumerable property', () => {
    expect(Object.getOwnPropertySymbols({ ...invalid('why') })).toEqual([])
  })
})
