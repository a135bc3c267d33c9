import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  admit as admitSized,
  admitsAll,
  afterDelivering,
  isExhausted,
  type ReadLimits,
  readLimits,
  withinBatch,
} from '../../src/core/read-plan.ts'
import { utf8 } from '../../src/model/bytes.ts'
import { MIB } from '../../src/model/limits.ts'
import type { ReadQuery } from '../../src/model/read-query.ts'
import { meteredBytesOf, type SequencedRecord } from '../../src/model/record.ts'

const ALL = Number.POSITIVE_INFINITY
const NONE: ReadLimits = { count: ALL, bytes: ALL, until: ALL }

function admit(limits: ReadLimits, records: readonly SequencedRecord[]) {
  const sized = records.map(({ timestamp, headers, body }) => ({
    timestamp,
    meteredBytes: meteredBytesOf(headers, body),
  }))
  return admitSized(limits, sized)
}

describe('the bounds of a query', () => {
  it.each<[ReadQuery, 'unary' | 'session', ReadLimits]>([
    [{}, 'unary', { count: 1000, bytes: MIB, until: ALL }],
    [{}, 'session', NONE],
    [{ count: 1000, bytes: MIB }, 'unary', { count: 1000, bytes: MIB, until: ALL }],
    [{ count: 1001, bytes: MIB + 1, until: 9 }, 'unary', { count: 1000, bytes: MIB, until: 9 }],
    [{ count: 5, bytes: 7 }, 'unary', { count: 5, bytes: 7, until: ALL }],
    [{ count: 1001, bytes: MIB + 1, until: 9 }, 'session', { count: 1001, bytes: MIB + 1, until: 9 }],
    [{ count: 0, bytes: 0, until: 0 }, 'unary', { count: 0, bytes: 0, until: 0 }],
    [{ count: 0, bytes: 0, until: 0 }, 'session', { count: 0, bytes: 0, until: 0 }],
    [{ count: 2 ** 60 }, 'session', { count: 2 ** 60, bytes: ALL, until: ALL }],
  ])('%j, %s', (query, kind, limits) => {
    expect(readLimits(query, kind)).toEqual(limits)
  })

  it('are at most 1,000 records and 1 MiB per batch, and never more than what is left', () => {
    expect(withinBatch(NONE)).toEqual({ count: 1000, bytes: MIB, until: ALL })
    const small = { count: 3, bytes: 4, until: 5 }
    expect(withinBatch(small)).toEqual(small)
  })
})

describe('the remaining bounds', () => {
  it.each<[string, Partial<ReadLimits>, boolean]>([
    ['without bounds', {}, false],
    ['above 0', { count: 1, bytes: 1 }, false],
    ['with `count` 0', { count: 0 }, true],
    ['with `bytes` 0', { bytes: 0 }, true],
  ])('%s: exhausted is %3$s', (_, limits, expected) => {
    expect(isExhausted({ ...NONE, ...limits })).toBe(expected)
  })
})

describe('any bounds over any records', () => {
  const bound = (max: number) => fc.oneof(fc.nat(max), fc.constant(ALL))
  const limits = fc.record({ count: bound(8), bytes: bound(120), until: bound(60) })
  const log = fc
    .array(fc.record({ size: fc.nat(30), gap: fc.nat(8), headers: fc.nat(2) }), { maxLength: 10 })
    .map((specs) => {
      let timestamp = 0
      return specs.map(({ size, gap, headers }, seqNum): SequencedRecord => {
        timestamp += gap
        const header = [utf8('n'), utf8('v')] as const
        return {
          seqNum,
          timestamp,
          headers: new Array(headers).fill(header),
          body: new Uint8Array(size),
        }
      })
    })
  const sizeOf = (all: readonly SequencedRecord[]) =>
    all.reduce((sum, { headers, body }) => sum + meteredBytesOf(headers, body), 0)
  const isWithin = ({ count, bytes, until }: ReadLimits, all: readonly SequencedRecord[]) =>
    all.length <= count && sizeOf(all) <= bytes && all.every(({ timestamp }) => timestamp < until)

  it('admit the longest prefix within them', () => {
    fc.assert(
      fc.property(limits, log, (limits, log) => {
        const admitted = admit(limits, log)
        const prefix = log.slice(0, admitted.count)
        expect(admitted.meteredBytes).toBe(sizeOf(prefix))
        expect(isWithin(limits, prefix)).toBe(true)
        if (prefix.length < log.length) {
          expect(isWithin(limits, log.slice(0, prefix.length + 1))).toBe(false)
        }
      }),
    )
  })

  it('admit a whole batch exactly if they admit each of its records', () => {
    fc.assert(
      fc.property(limits, log, (limits, log) => {
        const summary = {
          count: log.length,
          meteredBytes: sizeOf(log),
          lastTimestamp: log.at(-1)?.timestamp ?? -1,
        }
        expect(admitsAll(limits, summary)).toBe(admit(limits, log).count === log.length)
      }),
    )
  })

  it('are never exceeded over batches of any size, which deliver the same as one batch', () => {
    fc.assert(
      fc.property(limits, log, fc.integer({ min: 1, max: 4 }), (limits, log, batchSize) => {
        let remaining: ReadLimits = limits
        const delivered: SequencedRecord[] = []
        for (let from = 0; from < log.length && !isExhausted(remaining); from += batchSize) {
          const batch = log.slice(from, from + batchSize)
          const { count, meteredBytes } = admit(remaining, batch)
          delivered.push(...batch.slice(0, count))
          remaining = afterDelivering(remaining, count, meteredBytes)
          if (count < batch.length) break
        }
        expect(isWithin(limits, delivered)).toBe(true)
        expect(delivered.length).toBe(admit(limits, log).count)
      }),
    )
  })
})
