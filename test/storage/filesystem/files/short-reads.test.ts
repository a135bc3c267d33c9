import { expect, test } from 'vitest'
import { ShortReads } from '../../../../adapters/storage/filesystem/files/short-reads.ts'

/** Attempts reads that take `ms` each. Returns how many were synchronous. */
function synchronousOf(attempts: number, ms: number, reads: ShortReads, clock: { now: number }): number {
  let count = 0
  for (let i = 0; i < attempts; i++) {
    count += reads.attempt(() => {
      clock.now += ms
      return 1
    })
  }
  return count
}

function setUp(): [ShortReads, { now: number }] {
  const clock = { now: 0 }
  return [new ShortReads(() => clock.now), clock]
}

test('all reads of memory are synchronous', () => {
  const [reads, clock] = setUp()
  expect(synchronousOf(1_000, 0.01, reads, clock)).toBe(1_000)
})

test('reads of a slow disk are asynchronous but for ever fewer', () => {
  const [reads, clock] = setUp()
  expect(synchronousOf(17, 10, reads, clock)).toBe(1)
  expect(synchronousOf(33, 10, reads, clock)).toBe(1)
  synchronousOf(100_000, 10, reads, clock)
  expect(synchronousOf(40_970, 10, reads, clock)).toBe(10)
})

test('reads are synchronous again once the disk is fast', () => {
  const [reads, clock] = setUp()
  synchronousOf(100_000, 10, reads, clock)
  synchronousOf(4_097, 0.01, reads, clock)
  expect(synchronousOf(1_000, 0.01, reads, clock)).toBe(1_000)
  expect(synchronousOf(17, 10, reads, clock)).toBe(1)
})

test('a read that throws does not change the pace', () => {
  const [reads, clock] = setUp()
  const fail = () => {
    throw new Error('EIO')
  }
  expect(() => reads.attempt(fail)).toThrow('EIO')
  expect(synchronousOf(10, 0.01, reads, clock)).toBe(10)
})
