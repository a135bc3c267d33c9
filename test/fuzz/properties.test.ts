import fc from 'fast-check'
import { describe, it } from 'vitest'
import { check } from './harness/check.ts'
import { TARGETS } from './targets/index.ts'

const RUNS = 100

describe.each(TARGETS)('$name', (target) => {
  it('takes what was written for what it says', async () => {
    await fc.assert(
      fc.asyncProperty(target.models, async (model) => {
        await check(target, await target.encode(model), { model })
      }),
      { numRuns: RUNS },
    )
  })
})
