import { describe, expect, it } from 'vitest'
import { contentCodingOf, responseCodingOf } from '../../src/wire/compression.ts'

describe('contentCodingOf', () => {
  it.each([
    [null, 'identity'],
    ['', 'identity'],
    ['identity', 'identity'],
    ['gzip', 'gzip'],
    ['x-gzip', 'gzip'],
    [' GZIP ', 'gzip'],
    ['Zstd', 'zstd'],
    ['br', undefined],
    ['gzip, zstd', undefined],
    ['unknown', undefined],
  ])('%j is %s', (header, expected) => {
    expect(contentCodingOf(header)).toBe(expected)
  })
})

describe('responseCodingOf', () => {
  it.each([
    [null, undefined],
    ['', undefined],
    ['identity', undefined],
    ['*', undefined],
    ['br', undefined],
    ['gzip', 'gzip'],
    ['x-gzip', 'gzip'],
    ['GZIP, Zstd', 'zstd'],
    ['zstd, gzip', 'zstd'],
    ['gzip, zstd;q=0.5', 'gzip'],
    ['gzip;q=0.5, zstd;q=0.6', 'zstd'],
    ['zstd;q=0, gzip; q=0.1', 'gzip'],
    ['gzip;q=0', undefined],
    ['gzip;q=x', undefined],
    ['gzip, deflate, br', 'gzip'],
  ])('%j is %s', (header, expected) => {
    expect(responseCodingOf(header)).toBe(expected)
  })
})
