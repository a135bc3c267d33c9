import { expect, test } from 'vitest'
import { ShortCalls } from '../../../../adapters/storage/filesystem/files/node-files.ts'

/** Attempts calls that take `ms` each. Returns how many were synchronous. */
function synchronousOf(attempts: number, ms: number, calls: ShortCalls, clock: { now: number }): number {
  let count = 0
  for (let i = 0; i < attempts; i++) {
    count += calls.attempt(() => {
      clock.now += ms
      return 1
    })
  }
  return count
}

function setUp(): [ShortCalls, { now: number }] {
  const clock = { now: 0 }
  return [new ShortCalls(() => clock.now), clock]
}

test('all calls on memory are synchronous', () => {
  const [calls, clock] = setUp()
  expect(synchronousOf(1_000, 0.01, calls, clock)).toBe(1_000)
})

test('calls on a slow disk are asynchronous, with ever fewer exceptions', () => {
  const [calls, clock] = setUp()
  expect(synchronousOf(17, 10, calls, clock)).toBe(1)
  expect(synchronousOf(33, 10, calls, clock)).toBe(1)
  synchronousOf(100_000, 10, calls, clock)
  expect(synchronousOf(40_970, 10, calls, clock)).toBe(10)
})

test('calls are synchronous again once the disk is fast', () => {
  const [calls, clock] = setUp()
  synchronousOf(100_000, 10, calls, clock)
  synchronousOf(4_097, 0.01, calls, clock)
  expect(synchronousOf(1_000, 0.01, calls, clock)).toBe(1_000)
  expect(synchronousOf(17, 10, calls, clock)).toBe(1)
})

test('a call that throws does not change the ratio', () => {
  const [calls, clock] = setUp()
  const fail = () => {
    throw new Error('EIO')
  }
  expect(() => calls.attempt(fail)).toThrow('EIO')
  expect(synchronousOf(10, 0.01, calls, clock)).toBe(10)
})
