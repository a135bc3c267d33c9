import { describe, expect, it } from 'vitest'
import { type VendorHeader, vendorHeaderName } from '../../src/wire/header-names.ts'
import { HEADER_PREFIXES, sessionContentType } from '../../src/wire/media-type.ts'
import { headerPrefixOf, type RequestHeaders, vendorHeader } from '../../src/wire/vendor-headers.ts'
import { rejection } from '../model/rejection.ts'
import { outcomeOf } from './outcome.ts'

function requestHeaders(init: Record<string, string>): RequestHeaders {
  const headers = new Headers(init)
  return { header: (name) => headers.get(name) ?? undefined }
}

describe('the header prefixes', () => {
  it('are both accepted by default, the neutral one first', () => {
    expect(HEADER_PREFIXES).toEqual(['svc', 's2'])
  })

  it.each([
    ['svc', 'svcs/proto'],
    ['s2', 's2s/proto'],
  ])('%s names the session content type %s', (prefix, type) => {
    expect(sessionContentType(prefix)).toBe(type)
  })

  it.each<[VendorHeader, string]>([
    ['basin', 'svc-basin'],
    ['encryption-key', 'svc-encryption-key'],
    ['format', 'svc-format'],
    ['provision-result', 'svc-provision-result'],
    ['request-token', 'svc-request-token'],
    ['stream-config', 'svc-stream-config'],
  ])('%s is the header %s', (header, name) => {
    expect(vendorHeaderName('svc', header)).toBe(name)
  })
})

describe('vendorHeader', () => {
  it.each<[string, Record<string, string>, string | undefined]>([
    ['the neutral word', { 'svc-basin': 'a' }, 'a'],
    ['the public word', { 's2-basin': 'a' }, 'a'],
    ['upper case', { 'S2-Basin': 'a' }, 'a'],
    ['both words with one value', { 'svc-basin': 'a', 's2-basin': 'a' }, 'a'],
    ['an empty value', { 'svc-basin': '' }, ''],
    ['none', {}, undefined],
    ['a word that is not accepted', { 'acme-basin': 'a' }, undefined],
    ['another header of the word', { 'svc-format': 'raw' }, undefined],
  ])('reads %s', (_, headers, value) => {
    expect(vendorHeader(requestHeaders(headers), 'basin')).toBe(value)
  })

  it('rejects two prefixes with contradictory values', () => {
    const headers = requestHeaders({ 'svc-basin': 'a', 's2-basin': 'b' })
    expect(outcomeOf(() => vendorHeader(headers, 'basin'))).toBe('400 bad_header')
    expect(rejection(() => vendorHeader(headers, 'basin'))?.message).toContain('`svc-basin` and `s2-basin`')
  })

  it('accepts only the configured prefixes', () => {
    const headers = requestHeaders({ 'svc-basin': 'a', 'acme-basin': 'b' })
    expect(vendorHeader(headers, 'basin', ['acme'])).toBe('b')
  })
})

describe('headerPrefixOf', () => {
  it.each<[string, Record<string, string>, string]>([
    ['no vendor header', { accept: 'application/json' }, 'svc'],
    ['the neutral word', { 'svc-format': 'raw' }, 'svc'],
    ['the public word', { 's2-basin': 'a' }, 's2'],
    ['a foreign header that begins with a prefix', { 's2-trace-id': '1' }, 'svc'],
    ['the public session content type', { 'content-type': 's2s/proto' }, 's2'],
    ['the public session content type, decorated', { 'content-type': 'S2S/Proto; v=1' }, 's2'],
    ['the neutral session content type', { 'content-type': 'svcs/proto' }, 'svc'],
    ['both words', { 's2-basin': 'a', 'svc-format': 'raw' }, 'svc'],
    ['a header that begins like the neutral word', { 's2-request-token': 't', 'svc-trace-id': '1' }, 's2'],
    [
      'the public session content type beside such a header',
      { 'content-type': 's2s/proto', 'svc-trace-id': '1' },
      's2',
    ],
    ['a header that only contains the word', { 'x-s2-basin': 'a', s2basin: 'a' }, 'svc'],
  ])('with %s', (_, headers, prefix) => {
    expect(headerPrefixOf(requestHeaders(headers))).toBe(prefix)
  })

  it('falls back to the first accepted prefix if the neutral one is not accepted', () => {
    expect(headerPrefixOf(requestHeaders({ 'svc-basin': 'a' }), ['acme', 's2'])).toBe('acme')
  })
})
