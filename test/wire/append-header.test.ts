import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { decodeAppendHeader, encodeAppendHeader } from '../../src/wire/append-header.ts'

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
