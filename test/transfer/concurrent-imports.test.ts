import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createHandler } from '../../adapters/http/index.ts'
import { type Engine, fenceRecord } from '../../src/index.ts'
import { contentOf, exported, imported, withStreams } from './support.ts'

const handlerOf = (hw: Engine) => createHandler(hw, { auth: 'none' })

describe('two concurrent imports', () => {
  it('never mix their records, in any order of their requests', { tags: ['slow'] }, async () => {
    const source = await withStreams(['s'])
    await source.stream('s').append([fenceRecord('me'), 'a', 'b', 'c'])
    const text = await exported(source.service)
    let successes = 0
    await fc.assert(
      fc.asyncProperty(fc.scheduler(), fc.boolean(), async (scheduler, isResumed) => {
        const target = await withStreams(['s'])
        const handler = handlerOf(target.hw)
        const fetch = (request: Request) => scheduler.schedule(Promise.resolve()).then(() => handler(request))
        const outcomes = Promise.allSettled([
          imported(target.with({ fetch }), text),
          imported(target.with({ fetch }), text, { resume: isResumed }),
        ])
        await scheduler.waitFor(outcomes)
        const succeeded = (await outcomes).filter(({ status }) => status === 'fulfilled')
        successes += succeeded.length
        if (succeeded.length > 0) expect(contentOf(await exported(target.service))).toBe(contentOf(text))
        await target.hw.close()
      }),
    )
    expect(successes).toBeGreaterThan(0)
  })
})
