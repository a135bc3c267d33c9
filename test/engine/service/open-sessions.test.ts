import { beforeEach, describe, expect, it } from 'vitest'
import { type AppendSession, HeadwaterError, type ReadCursor } from '../../../src/index.ts'
import { gated, openEngine, type TestEngine, testStorage } from '../../support/index.ts'

const REFUSED = {
  code: 'rate_limited',
  status: 429,
  retryable: true,
  mayHaveEffects: false,
  field: 'limits.openSessions',
  message: 'limit exceeded: `limits.openSessions` is 2; the request had no effect',
}

let engine: TestEngine
beforeEach(async () => {
  engine = await openEngine({ limits: { openSessions: 2 } })
})

/** Each way to open something, and how it ends. */
const KINDS: Record<string, () => Promise<() => Promise<unknown>>> = {
  'a read session': async () => {
    const cursor = (await engine.stream.openCursor({ seqNum: 0 }, {})) as ReadCursor
    return async () => cursor.close()
  },
  'an append session': async () => {
    const session: AppendSession = await engine.stream.appendSession()
    return () => session.close()
  },
  'a long poll': async () => {
    const controller = new AbortController()
    let failure: unknown
    const poll = engine.stream
      .readBatch({ tailOffset: 0, waitMs: 60_000 }, { signal: controller.signal })
      .catch((error: unknown) => {
        failure = error
      })
    await engine.clock.settle()
    if (failure !== undefined) throw failure
    return async () => {
      controller.abort()
      await poll
    }
  },
}
const NAMES = Object.keys(KINDS)
const PAIRS = NAMES.flatMap((open) => NAMES.map((rejected) => [open, rejected] as const))

describe.each(PAIRS)('%s, twice, with a limit of two', (open, rejected) => {
  it(`${rejected} is rejected until one has ended`, async () => {
    const ends = [await KINDS[open]!(), await KINDS[open]!()]
    expect(engine.hw.stats().openSessions).toBe(2)
    const error = await KINDS[rejected]!().catch((reason: unknown) => reason)
    expect(HeadwaterError.is(error)).toBe(true)
    expect(error).toMatchObject(REFUSED)
    await ends[0]!()
    expect(engine.hw.stats().openSessions).toBe(1)
    ends.push(await KINDS[rejected]!())
    expect(engine.hw.stats().openSessions).toBe(2)
    for (const end of ends) await end()
    await engine.clock.settle()
    expect(engine.hw.stats().openSessions).toBe(0)
  })
})

it('sessions that end at once, fail or are never opened do not count', async () => {
  const { stream, hw } = engine
  const missing = hw.basin('basin', { autoCreate: false }).stream('missing')
  for (let i = 0; i < 3; i++) {
    await stream.append('a')
    expect((await stream.readBatch({ seqNum: 0 }, { as: 'bytes' })).records.length).toBe(i + 1)
    await expect(stream.readBatch({ seqNum: 100 })).rejects.toMatchObject({ status: 416 })
    await expect(stream.openCursor({ seqNum: 100, waitMs: 0 }, {})).rejects.toMatchObject({ status: 416 })
    expect(await stream.openCursor({ waitMs: 0 }, { allowsEmpty: 'session' })).toBe(undefined)
    await expect(missing.openCursor({}, {})).rejects.toMatchObject({ code: 'stream_not_found' })
    await expect(missing.appendSession()).rejects.toMatchObject({ code: 'stream_not_found' })
    for await (const _ of stream.follow({ seqNum: 0 }).batches()) break
    expect(hw.stats().openSessions).toBe(0)
  }
})

it('a session counts while it is being opened', async () => {
  await engine.hw.close()
  const storage = gated(testStorage())
  engine = await openEngine({ storage, limits: { openSessions: 2 } })
  const opening = [1, 2, 3].map(() => engine.stream.openCursor({ seqNum: 0 }, {}))
  const outcomes = await Promise.allSettled(opening)
  expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected'])
})
