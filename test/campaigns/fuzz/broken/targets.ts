import fc from 'fast-check'
import { rangeError } from '../harness/refusals.ts'
import { type AnyTarget, target } from '../harness/target.ts'

/** Decoders that break a promise when they find a certain byte, to check that each is detected. */

const BAD_BYTE = 0xee

function broken(name: string, decode: (input: Uint8Array) => unknown): AnyTarget {
  return target({
    name,
    models: fc.uint8Array({ minLength: 4, maxLength: 30, max: BAD_BYTE - 1 }),
    encode: (bytes) => bytes,
    decode: (input: Uint8Array) => (input.includes(BAD_BYTE) ? decode(input) : input.length),
    refuses: rangeError,
  })
}

const retained: unknown[] = []

export const BROKEN: readonly AnyTarget[] = [
  broken('of-another-type', () => {
    throw new TypeError('x is not a function')
  }),
  broken('of-the-platform', () => new Uint8Array(-1)),
  broken('repeating', (input) => {
    throw new RangeError(`not this: ${'x'.repeat(input.length * 100_000)}`)
  }),
  broken('endless', () => {
    for (;;);
  }),
  broken('unanswered', () => new Promise(() => {})),
  broken('exploding', () => {
    const parts: unknown[] = []
    for (;;) parts.push(new Array(100_000).fill(0).map((_, i) => ({ i })))
  }),
  broken('allocating', () => new Uint8Array(50_000_000).length),
  broken('returning', () => 'x'.repeat(1_000_000)),
  broken('polluting', () => {
    Object.assign(Object.prototype, { polluted: true })
  }),
  broken('keeping', () => {
    if (retained.length === 0) retained.push(new Array(8_000_000).fill(0.5))
  }),
  target({
    name: 'lying',
    models: fc.uint8Array({ maxLength: 30, max: BAD_BYTE - 1 }),
    encode: (bytes) => bytes,
    decode: (input: Uint8Array) => input.includes(BAD_BYTE),
    refuses: rangeError,
    verify: (hasFound) => {
      if (hasFound) throw new Error('it is not what it should be')
    },
  }),
  target({
    name: 'sound',
    models: fc.uint8Array({ maxLength: 30 }),
    encode: (bytes) => bytes,
    decode: (input: Uint8Array) => {
      if (input.length > 20) throw new RangeError('it is too long')
      return input
    },
    refuses: rangeError,
  }),
]
