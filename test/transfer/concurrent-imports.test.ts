import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createHandler } from '../../adapters/http/index.ts'
import { type Engine, fenceRecord } from '../../src/index.ts'
import { contentOf, type Endpoint, exported, imported, openEndpoint, withStreams } from './support.ts'

/** An export of a stream with gaps: one at the start that contains a fence, and one in the middle. */
async function withGaps(): Promise<string> {
  const { hw, clock, service } = await openEndpoint()
  await hw.createBasin('basin-a')
  const basin = hw.basin('basin-a')
  await basin.createStream('s', { retentionPolicy: { ageSeconds: 1 } })
  await basin.stream('s').append([fenceRecord('me')])
  await basin.stream('s').reconfigure({ retentionPolicy: 'infinite' })
  await basin.stream('s').append(['a', 'b', 'c'])
  await basin.stream('s').reconfigure({ retentionPolicy: { ageSeconds: 1 } })
  await basin.stream('s').append(['gone', 'gone'])
  await basin.stream('s').reconfigure({ retentionPolicy: 'infinite' })
  await basin.stream('s').append(['d', 'e'])
  await clock.advance('5s')
  return exported(service)
}

const handlerOf = (hw: Engine) => createHandler(hw, { auth: 'none' })

describe('two concurrent imports', () => {
  it('never succeed with records that may expire, in any order of their requests', {
    tags: ['slow'],
  }, async () => {
    const text = await withGaps()
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
        if (succeeded.length > 0) {
          await target.clock.advance('5s')
          expect(contentOf(await exported(target.service))).toBe(contentOf(text))
        }
        await target.hw.close()
      }),
    )
    expect(successes).toBeGreaterThan(0)
  })
})

describe('an import fails when its stream', () => {
  const changes: [string, RegExp, (target: Endpoint) => Promise<unknown>][] = [
    ['is deleted', /was deleted during the import/, ({ hw }) => hw.basin('basin-a').stream('s').delete()],
    [
      'is deleted and created again',
      /was reconfigured during the import/,
      async ({ hw }) => {
        await hw.basin('basin-a').stream('s').delete()
        await hw.basin('basin-a').createStream('s')
      },
    ],
    [
      'is reconfigured',
      /was reconfigured during the import/,
      ({ hw }) =>
        hw
          .basin('basin-a')
          .stream('s')
          .reconfigure({ retentionPolicy: { ageSeconds: 1 } }),
    ],
  ]

  it.each(changes)('%s before its end', async (_, message, change) => {
    const source = await withStreams(['s'])
    await source.stream('s').append(['x', 'y'])
    const text = await exported(source.service)
    const target: Endpoint = await openEndpoint({
      wrapFetch: (fetch) => async (request) => {
        const answer = await fetch(request)
        if (request.method === 'POST') await change(target)
        return answer
      },
    })
    await expect(imported(target.service, text)).rejects.toThrow(message)
  })
})
