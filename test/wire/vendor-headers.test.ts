import { describe, expect, it } from 'vitest'
import { vendorHeader, wordOfRequest } from '../../src/wire/vendor-headers.ts'
import {
  sessionContentType,
  VENDOR_WORDS,
  type VendorHeader,
  vendorHeaderName,
} from '../../src/wire/words.ts'
import { refusal, refused } from './refused.ts'

describe('the words', () => {
  it('are both accepted by default, the neutral one first', () => {
    expect(VENDOR_WORDS).toEqual(['svc', 's2'])
  })

  it.each([
    ['svc', 'svcs/proto'],
    ['s2', 's2s/proto'],
  ])('%s names the session content type %s', (word, type) => {
    expect(sessionContentType(word)).toBe(type)
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
    expect(vendorHeader(new Headers(headers), 'basin')).toBe(value)
  })

  it('refuses two words that contradict each other', () => {
    const headers = new Headers({ 'svc-basin': 'a', 's2-basin': 'b' })
    expect(refused(() => vendorHeader(headers, 'basin'))).toBe('400 bad_header')
    expect(refusal(() => vendorHeader(headers, 'basin'))?.message).toContain('`svc-basin` and `s2-basin`')
  })

  it('knows only the words it is given', () => {
    const headers = new Headers({ 'svc-basin': 'a', 'acme-basin': 'b' })
    expect(vendorHeader(headers, 'basin', ['acme'])).toBe('b')
  })
})

describe('wordOfRequest', () => {
  it.each<[string, Record<string, string>, string]>([
    ['no vendor header', { accept: 'application/json' }, 'svc'],
    ['the neutral word', { 'svc-format': 'raw' }, 'svc'],
    ['the public word', { 's2-basin': 'a' }, 's2'],
    ['a header of somebody else that begins with a word', { 's2-trace-id': '1' }, 'svc'],
    ['the public session content type', { 'content-type': 's2s/proto' }, 's2'],
    ['the public session content type, decorated', { 'content-type': 'S2S/Proto; v=1' }, 's2'],
    ['the neutral session content type', { 'content-type': 'svcs/proto' }, 'svc'],
    ['both words', { 's2-basin': 'a', 'svc-format': 'raw' }, 'svc'],
    ['a header that only contains the word', { 'x-s2-basin': 'a', s2basin: 'a' }, 'svc'],
  ])('with %s', (_, headers, word) => {
    expect(wordOfRequest(new Headers(headers))).toBe(word)
  })

  it('falls back to the first accepted word where the neutral one is not accepted', () => {
    expect(wordOfRequest(new Headers({ 'svc-basin': 'a' }), ['acme', 's2'])).toBe('acme')
  })
})
