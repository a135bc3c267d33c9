import { expect } from 'vitest'

/** Vitest compares arrays of bytes element by element, which takes a second for 300 KB. */
expect.addEqualityTesters([
  (a, b) => {
    if (!(a instanceof Uint8Array && b instanceof Uint8Array) || a.constructor !== b.constructor) return
    // If they differ, Vitest finds out where.
    return Buffer.compare(a, b) === 0 ? true : undefined
  },
])
