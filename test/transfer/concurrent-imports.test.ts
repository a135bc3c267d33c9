import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createHandler } from '../../adapters/http/index.ts'
import { type Engine, fenceRecord } from '../../src/index.ts'
import { deferred } from '../support/index.ts'
import { contentOf, type Endpoint, exported, imported, openEndpoint, STRIDE } from './support.ts'

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

async function emptyTarget(): Promise<Endpoint> {
  const target = await openEndpoint()
  await target.hw.createBasin('basin-a')
  await target.hw.basin('basin-a').createStream('s')
  return target
}

const isWrite = ({ method, url }: Request) => method !== 'GET' && url.includes('/streams/')
const handlerOf = (hw: Engine) => createHandler(hw, { auth: 'none' })

describe('two concurrent imports', () => {
  it('never succeed with records that may expire, in any order of their requests', async () => {
    const text = await withGaps()
    let successes = 0
    await fc.assert(
      fc.asyncProperty(fc.scheduler(), fc.boolean(), async (scheduler, isResumed) => {
        const target = await emptyTarget()
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
      { numRuns: 300 / STRIDE },
    )
    expect(successes).toBeGreaterThan(0)
  })

  it('keep the retention of the first, and the second reports it', async () => {
    const text = await withGaps()
    const target = await emptyTarget()
    const handler = handlerOf(target.hw)
    let second: Promise<unknown> | undefined
    const [secondWaits, secondContinues] = [deferred(), deferred()]
    let writes = 0
    const slow = target.with({
      fetch: async (request) => {
        // After the import read the tail, and while records expire.
        if (isWrite(request) && writes++ === 1) {
          secondWaits.resolve()
          await secondContinues.promise
        }
        return handler(request)
      },
    })
    let appends = 0
    const first = target.with({
      fetch: async (request) => {
        if (request.method === 'POST' && appends++ === 1) {
          secondContinues.resolve()
          await second
        }
        return handler(request)
      },
    })
    second = imported(slow, text).catch(String)
    await secondWaits.promise
    await expect(imported(first, text)).rejects.toThrow(
      'was reconfigured during the import, perhaps by another import',
    )
    expect(await second).toContain('another client appends to it: its tail is 1, not 0')
    await target.clock.advance('5s')
    const { records } = await target.hw.basin('basin-a').stream('s').readBatch({ seqNum: 0 })
    expect(records.map(({ body }) => body)).toEqual(['a', 'b', 'c'])
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
    const source = await openEndpoint()
    await source.hw.createBasin('basin-a')
    await source.hw.basin('basin-a').createStream('s')
    await source.hw.basin('basin-a').stream('s').append(['x', 'y'])
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

  it('is deleted with its last request', async () => {
    const text = await withGaps()
    let writes = 0
    const countWrites: Endpoint = await openEndpoint({
      wrapFetch: (fetch) => (request) => {
        if (request.method === 'PUT' && isWrite(request)) writes++
        return fetch(request)
      },
    })
    await imported(countWrites.service, text)
    const target: Endpoint = await openEndpoint({
      wrapFetch: (fetch) => async (request) => {
        if (request.method === 'PUT' && isWrite(request) && --writes === 0)
          await target.hw.basin('basin-a').stream('s').delete()
        return fetch(request)
      },
    })
    await expect(imported(target.service, text)).rejects.toThrow(
      'was deleted during the import: it ends at 0, not at 8',
    )
  })
})
