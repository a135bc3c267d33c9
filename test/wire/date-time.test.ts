import fc from 'fast-check'
import { expect, it } from 'vitest'
import { dateTimeOf, dateTimeText } from '../../src/wire/json-members.ts'

it.each([
  ['1970-01-01T00:00:00Z', 0],
  ['1970-01-01t00:00:00z', 0],
  ['1970-01-01 00:00:00Z', 0],
  ['1970-01-01T01:30:00+01:30', 0],
  ['1969-12-31T23:00:00-01:00', 0],
  ['1970-01-01T00:00:00.001Z', 1],
  ['1970-01-01T00:00:00.001999999999Z', 1],
  ['1970-01-01T00:00:00.5Z', 500],
  ['2024-02-29T00:00:00Z', 1_709_164_800_000],
  ['2016-12-31T23:59:60Z', 1_483_228_800_000],
  ['0099-01-01T00:00:00Z', -59_042_995_200_000],
])('decodes %s', (text, expected) => {
  expect((dateTimeOf(text, 'at') as Date).getTime()).toBe(expected)
})

it.each([
  '',
  '1970-01-01',
  '1970-01-01T00:00:00',
  '1970-01-01T00:00Z',
  '1970-13-01T00:00:00Z',
  '1970-00-01T00:00:00Z',
  '1970-02-29T00:00:00Z',
  '1970-04-31T00:00:00Z',
  '1970-01-00T00:00:00Z',
  '1970-01-01T24:00:00Z',
  '1970-01-01T00:60:00Z',
  '1970-01-01T00:00:61Z',
  '1970-01-01T00:00:00+24:00',
  '1970-01-01T00:00:00+01',
  '1970-01-01T00:00:00.Z',
  '+001970-01-01T00:00:00Z',
  ' 1970-01-01T00:00:00Z',
  `1970-01-01T00:00:00.${'0'.repeat(60)}Z`,
])('rejects %j', (text) => {
  expect(() => dateTimeOf(text, 'at')).toThrow('`at` must be a date and time of RFC 3339')
})

it('round-trips', () => {
  const dates = fc.date({ min: new Date('0000-01-01'), max: new Date('9999-12-31'), noInvalidDate: true })
  fc.assert(
    fc.property(dates, (date) => {
      expect(dateTimeOf(dateTimeText(date), 'at')).toEqual(date)
    }),
  )
})
