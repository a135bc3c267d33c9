import { expect, it } from 'vitest'
import { parseDataFormat } from '../../src/wire/vendor-headers.ts'
import { outcomeOf } from './outcome.ts'

it.each([
  [undefined, 'raw'],
  [null, 'raw'],
  ['raw', 'raw'],
  ['json', 'raw'],
  [' raw ', 'raw'],
  ['base64', 'base64'],
  ['json-binsafe', 'base64'],
  ['\tbase64', 'base64'],
])('%j is %s', (value, format) => {
  expect(parseDataFormat(value)).toBe(format)
})

it.each(['', 'RAW', 'Base64', 'binary', 'raw,base64', 'toString'])('rejects %j', (value) => {
  expect(outcomeOf(() => parseDataFormat(value))).toBe('400 bad_header')
  expect(() => parseDataFormat(value, 's2-format')).toThrow('`s2-format`')
})
