import { describe, expect, it } from 'vitest'
import { assertValid } from '../../src/model/errors.ts'
import {
  basinNameProblem,
  basinPrefixProblem,
  fencingTokenProblem,
  requestTokenProblem,
  streamNameProblem,
  streamPrefixProblem,
} from '../../src/model/names.ts'
import { titled } from '../support/titled.ts'
import { invalidMessage } from './rejection.ts'

const OK = undefined
const BEGIN = 'basin name must begin with a lowercase letter or number'
const END = 'basin name must end with a lowercase letter or number'
const MIDDLE = 'basin name must comprise lowercase letters, numbers, and hyphens'
const TOO_LONG = 'basin name must not exceed 48 bytes in length'
const TOO_SHORT = 'basin name should be at least 8 bytes in length'

describe('a basin name', () => {
  it.each([
    ['a', OK],
    ['0', OK],
    ['my-basin-1', OK],
    ['a--b', OK],
    ['a'.repeat(48), OK],
    ['a'.repeat(49), TOO_LONG],
    // 25 characters, 50 bytes: lengths are bytes.
    ['é'.repeat(25), TOO_LONG],
    ['', 'basin name must not be empty'],
    ['-a', BEGIN],
    ['Aa', BEGIN],
    ['a-', END],
    ['aA', END],
    ['a\n', END],
    ['aBa', MIDDLE],
    ['a.a', MIDDLE],
    ['a_a', MIDDLE],
    ['a\na', MIDDLE],
    ['aéa', MIDDLE],
    // Of several problems, the first is reported.
    [`-${'A'.repeat(48)}`, TOO_LONG],
    ['-A-', BEGIN],
    ['aA-', END],
  ])('%j: %s', (name, problem) => {
    expect(basinNameProblem(name)).toBe(problem)
  })

  it.each([
    ['abcdefg', TOO_SHORT],
    ['abcdefgh', OK],
    ['', TOO_SHORT],
    ['-', TOO_SHORT],
    ['-bcdefgh', BEGIN],
    // Seven bytes in four characters, eight bytes in four.
    ['éééa', TOO_SHORT],
    ['éééé', BEGIN],
  ])('%j with at least 8 bytes: %s', (name, problem) => {
    expect(basinNameProblem(name, 8)).toBe(problem)
  })
})

describe('the prefix and start of a list of basins', () => {
  it.each([
    ['', 'prefix', OK],
    ['a-', 'prefix', OK],
    ['a', 'start-after', OK],
    ['a'.repeat(48), 'prefix', OK],
    ['a'.repeat(49), 'prefix', 'basin prefix must not exceed 48 bytes in length'],
    ['a'.repeat(49), 'start-after', 'basin start-after must not exceed 48 bytes in length'],
    ['-', 'prefix', 'basin prefix must begin with a lowercase letter or number'],
    ['A', 'start-after', 'basin start-after must begin with a lowercase letter or number'],
    ['a.', 'prefix', 'basin prefix must comprise lowercase letters, numbers, and hyphens'],
    ['a\n', 'prefix', 'basin prefix must comprise lowercase letters, numbers, and hyphens'],
    ['aB', 'start-after', 'basin start-after must comprise lowercase letters, numbers, and hyphens'],
  ] as const)('%j as %s: %s', (text, role, problem) => {
    expect(basinPrefixProblem(text, role)).toBe(problem)
  })
})

describe('a stream name', () => {
  it.each(
    titled<[string, string | undefined]>([
      ['a', OK],
      ['a/b c', OK],
      ['\u0001\n\t', OK],
      ['...', OK],
      ['./', OK],
      ['日本', OK],
      ['a'.repeat(512), OK],
      ['é'.repeat(256), OK],
      ['😀'.repeat(128), OK],
      ['', 'stream name must not be empty'],
      ['.', 'stream name must not be "." or ".."'],
      ['..', 'stream name must not be "." or ".."'],
      ['a'.repeat(513), 'stream name must not exceed 512 bytes in length'],
      [`${'é'.repeat(256)}a`, 'stream name must not exceed 512 bytes in length'],
      ['a\ud800', 'stream name must be valid Unicode'],
      ['\udc00a', 'stream name must be valid Unicode'],
      ['\0', 'stream name must not contain U+0000'],
      ['a\0é', 'stream name must not contain U+0000'],
    ]),
  )('%s', (_, name, problem) => {
    expect(streamNameProblem(name)).toBe(problem)
  })

  it.each(
    titled([
      ['', 'prefix', OK],
      ['.', 'prefix', OK],
      ['..', 'start-after', OK],
      ['a'.repeat(512), 'prefix', OK],
      ['a'.repeat(513), 'prefix', 'stream prefix must not exceed 512 bytes in length'],
      ['a\0', 'prefix', 'stream prefix must not contain U+0000'],
      ['a\0', 'start-after', OK],
      ['a'.repeat(513), 'start-after', 'stream start-after must not exceed 512 bytes in length'],
    ] as const),
  )('of a list %s', (_, text, role, problem) => {
    expect(streamPrefixProblem(text, role)).toBe(problem)
  })
})

describe('tokens', () => {
  it.each(
    titled<[string, string | undefined]>([
      ['', OK],
      ['a'.repeat(36), OK],
      ['é'.repeat(18), OK],
      ['a'.repeat(37), 'request token must not exceed 36 bytes in length'],
      ['é'.repeat(19), 'request token must not exceed 36 bytes in length'],
    ]),
  )('request token %s', (_, token, problem) => {
    expect(requestTokenProblem(token)).toBe(problem)
  })

  it.each(
    titled<[string, string | undefined]>([
      ['', OK],
      ['\0 any', OK],
      ['a'.repeat(36), OK],
      ['é'.repeat(18), OK],
      ['a'.repeat(37), 'fencing token must not exceed 36 bytes in length'],
      ['é'.repeat(19), 'fencing token must not exceed 36 bytes in length'],
      ['\ud800', 'fencing token must be valid Unicode'],
    ]),
  )('fencing token %s', (_, token, problem) => {
    expect(fencingTokenProblem(token)).toBe(problem)
  })
})

describe('assertValid', () => {
  it('throws 422 only if there is a problem', () => {
    expect(invalidMessage(() => assertValid(undefined, 'stream'))).toBeUndefined()
    expect(invalidMessage(() => assertValid('too long', 'stream'))).toBe('too long')
  })
})
