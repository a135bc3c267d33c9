import { concatBytes } from '../../../../src/model/bytes.ts'
import type { Input } from './target.ts'

const ATTEMPTS_MAX = 2000

/** Removes smaller and smaller pieces of an input as long as it still fails. */
export async function smallest(input: Input, fails: (input: Input) => Promise<boolean>): Promise<Input> {
  let least = input
  let attempts = 0
  for (let size = Math.ceil(least.length / 2); size >= 1; size = Math.floor(size / 2)) {
    for (let start = 0; start < least.length && attempts < ATTEMPTS_MAX; ) {
      const smaller = without(least, start, start + size)
      attempts++
      if (await fails(smaller)) least = smaller
      else start += size
    }
  }
  return least
}

function without(input: Input, start: number, end: number): Input {
  if (typeof input === 'string') return input.slice(0, start) + input.slice(end)
  return concatBytes([input.subarray(0, start), input.subarray(end)])
}
