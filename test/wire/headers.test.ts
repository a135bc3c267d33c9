import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  decodeAppendHeader,
  encodeAppendHeader,
  parseDataFormat,
  type RequestHeaders,
  sessionContentType,
  usedHeaderPrefix,
  type VendorHeader,
  vendorHeader,
  vendorHeaderName,
} from '../../src/wire/headers.ts'
import { rejection } from '../model/rejection.ts'
import { outcomeOf } from './outcome.ts'

function requestHeaders(init: Record<string, string>): RequestHeaders {
  const headers = new Headers(init)
  return { header: (name) => headers.get(name) ?? undefined }
}

describe('a header prefix', () => {
  it('begins the session content type', () => {
    expect([sessionContentType('svc'), sessionContentType('s2')]).toEqual(['svcs/proto', 's2s/proto'])
  })

  it.each<[VendorHeader, string]>([
    ['basin', 'svc-basin'],
    ['encryption-key', 'svc-encryption-key'],
    ['format', 'svc-format'],
    ['provision-result', 'svc-provision-result'],
    ['request-token', 'svc-request-token'],
    ['stream-config', 'svc-stream-config'],
  ])('begins the name of the header %s', (header, name) => {
    expect(vendorHeaderName('svc', header)).toBe(name)
  })
})

describe('the value of a protocol header', () => {
  it.each<[string, Record<string, string>, string | undefined]>([
    ['the neutral prefix', { 'svc-basin': 'a' }, 'a'],
    ['the hosted prefix', { 's2-basin': 'a' }, 'a'],
    ['upper case', { 'S2-Basin': 'a' }, 'a'],
    ['both prefixes with one value', { 'svc-basin': 'a', 's2-basin': 'a' }, 'a'],
    ['an empty value', { 'svc-basin': '' }, ''],
    ['no header', {}, undefined],
    ['an unknown prefix', { 'acme-basin': 'a' }, undefined],
    ['another header of the prefix', { 'svc-format': 'raw' }, undefined],
  ])('is found with %s', (_, headers, value) => {
    expect(vendorHeader(requestHeaders(headers), 'basin')).toBe(value)
  })

  it('must not differ between the prefixes', () => {
    const headers = requestHeaders({ 'svc-basin': 'a', 's2-basin': 'b' })
    expect(outcomeOf(() => vendorHeader(headers, 'basin'))).toBe('400 bad_header')
    expect(rejection(() => vendorHeader(headers, 'basin'))?.message).toContain('`svc-basin` and `s2-basin`')
  })
})

it.each<[string, Record<string, string>, string | undefined]>([
  ['no protocol header', { accept: 'application/json' }, undefined],
  ['the neutral prefix', { 'svc-format': 'raw' }, 'svc'],
  ['the hosted prefix', { 's2-basin': 'a' }, 's2'],
  ['only a foreign header that begins with a prefix', { 's2-trace-id': '1' }, undefined],
  ['the hosted session content type', { 'content-type': 's2s/proto' }, 's2'],
  ['the hosted session content type, decorated', { 'content-type': 'S2S/Proto; v=1' }, 's2'],
  ['the neutral session content type', { 'content-type': 'svcs/proto' }, 'svc'],
  ['both prefixes', { 's2-basin': 'a', 'svc-format': 'raw' }, 'svc'],
  ['a foreign header beside one of the protocol', { 's2-request-token': 't', 'svc-trace-id': '1' }, 's2'],
  [
    'the hosted session content type beside a foreign header',
    { 'content-type': 's2s/proto', 'svc-trace-id': '1' },
    's2',
  ],
  ['a header that only contains the prefix', { 'x-s2-basin': 'a', s2basin: 'a' }, undefined],
])('with %s, the prefix of a request is %3$s', (_, headers, prefix) => {
  expect(usedHeaderPrefix(requestHeaders(headers))).toBe(prefix)
})

describe('the data format', () => {
  it.each([
    [undefined, 'raw'],
    ['raw', 'raw'],
    ['json', 'raw'],
    [' raw ', 'raw'],
    ['base64', 'base64'],
    ['json-binsafe', 'base64'],
    ['\tbase64', 'base64'],
  ])('of %j is %s', (value, format) => {
    expect(parseDataFormat(value, 'svc-format')).toBe(format)
  })

  it.each(['', 'RAW', 'Base64', 'binary', 'raw,base64', 'toString'])('cannot be %j', (value) => {
    expect(rejection(() => parseDataFormat(value, 's2-format'))).toMatchObject({
      code: 'bad_header',
      message: 'Invalid header `s2-format`: must be `raw` or `base64`',
    })
  })
})

describe('the header of an append', () => {
  it('has the producer and the stream sequence', () => {
    const producer = { id: 'a b&=é', epoch: 1, seq: 2 }
    const encoded = 'producer=a%20b%26%3D%C3%A9&epoch=1&seq=2&match_seq_num=any'
    expect(encodeAppendHeader({ producer })).toBe(encoded)
    expect(encodeAppendHeader({ streamSeq: '7', matchSeqNum: 8 })).toBe('stream_seq=7&match_seq_num=8')
    expect(encodeAppendHeader({ matchSeqNum: 8 })).toBeUndefined()
  })

  it('leaves the condition of the body as it is, unless it has one', () => {
    expect('matchSeqNum' in decodeAppendHeader('stream_seq=7')).toBe(false)
    expect(decodeAppendHeader('stream_seq=7&match_seq_num=any')).toEqual({
      streamSeq: '7',
      matchSeqNum: undefined,
    })
  })

  it('is decoded to what was encoded', () => {
    const text = fc.string({ unit: 'grapheme', minLength: 1 })
    const producer = fc.record({ id: text, epoch: fc.maxSafeNat(), seq: fc.maxSafeNat() })
    fc.assert(
      fc.property(producer, text, fc.option(fc.maxSafeNat()), (producer, streamSeq, match) => {
        const conditions = { producer, streamSeq, matchSeqNum: match ?? undefined }
        expect(decodeAppendHeader(encodeAppendHeader(conditions)!)).toEqual(conditions)
      }),
    )
  })

  it.each([
    '',
    'producer',
    'producer=p',
    'producer=p&epoch=0',
    'epoch=0&seq=0',
    'producer=p&epoch=-1&seq=0',
    'producer=p&epoch=0&seq=1.5',
    'producer=p&epoch=0&seq=',
    'producer=%ff&epoch=0&seq=0',
    'producer=p&producer=q&epoch=0&seq=0',
    'producer=p=q&epoch=0&seq=0',
    'stream_seq=a&other=b',
    'stream_seq=a&match_seq_num=all',
    'match_seq_num=',
  ])('is malformed: %j', (value) => {
    expect(() => decodeAppendHeader(value)).toThrow(
      expect.objectContaining({ code: 'bad_header', field: 'headwater-append' }),
    )
  })
})
