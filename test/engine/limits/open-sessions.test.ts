import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type AppendSession, HeadwaterError, type ReadCursor } from '../../../src/index.ts'
import { gated } from '../gated-storage.ts'
import { openEngine, type TestEngine, testStorage } from '../support.ts'

const REFUSED = {
  code: 'rate_limited',
  status: 429,
  retryable: true,
  mayHaveEffects: false,
  field: 'limits.openSessions',
  message: 'refused, and nothing was done: `limits.openSessions`, 2, is used up',
}

let engine: TestEngine
beforeEach(async () => {
  engine = await openEngine({ limits: { openSessions: 2 } })
})
afterEach(() => engine.hw.close())

/** Each way to open something, and how it ends. */
const KINDS: Record<string, () => Promise<() => Promise<unknown>>> = {
  'a read session': async () => {
    const cursor = (await engine.stream.openRead({ seqNum: 0 })) as ReadCursor
    return async () => cursor.close()
  },
  'an append session': async () => {
    const session: AppendSession = await engine.stream.appendSession()
    return () => session.close()
  },
  'a long poll': async () => {
    const leaving = new AbortController()
    let refused: unknown
    const poll = engine.stream
      .readBatch({ waitSeconds: 60 }, { signal: leaving.signal })
      .catch((error: unknown) => {
        refused = error
      })
    await engine.clock.settle()
    if (refused !== undefined) throw refused
    return async () => {
      leaving.abort()
      await poll
    }
  },
}
const NAMES = Object.keys(KINDS)
const PAIRS = NAMES.flatMap((open) => NAMES.map((refused) => [open, refused] as const))

describe.each(PAIRS)('%s, twice: no more are permitted', (open, refused) => {
  it(`for ${refused} there is no place until one has ended`, async () => {
    const ends = [await KINDS[open]!(), await KINDS[open]!()]
    expect(engine.hw.stats().openSessions).toBe(2)
    const error = await KINDS[refused]!().catch((reason: unknown) => reason)
    expect(HeadwaterError.is(error)).toBe(true)
    expect(error).toMatchObject(REFUSED)
    await ends[0]!()
    expect(engine.hw.stats().openSessions).toBe(1)
    ends.push(await KINDS[refused]!())
    expect(engine.hw.stats().openSessions).toBe(2)
    for (const end of ends) await end()
    await engine.clock.settle()
    expect(engine.hw.stats().openSessions).toBe(0)
  })
})

it('what ends at once, fails or was never opened takes no place', async () => {
  const { stream, hw } = engine
  const missing = hw.basin('basin', { autoCreate: false }).stream('missing')
  for (let i = 0; i < 3; i++) {
    await stream.append('a')
    expect((await stream.readBatch({ seqNum: 0 })).records.length).toBe(i + 1)
    await expect(stream.readBatch({ seqNum: 100 })).rejects.toMatchObject({ status: 416 })
    await expect(stream.openRead({ seqNum: 100, waitSeconds: 0 })).rejects.toMatchObject({ status: 416 })
    expect(await stream.openRead({ waitSeconds: 0 }, { emptyAtTail: true })).toBe(undefined)
    await expect(missing.openRead()).rejects.toMatchObject({ code: 'stream_not_found' })
    await expect(missing.appendSession()).rejects.toMatchObject({ code: 'stream_not_found' })
    for await (const _ of stream.read({ seqNum: 0 })) break
    expect(hw.stats().openSessions).toBe(0)
  }
})

it('a place is taken while a session is being opened', async () => {
  await engine.hw.close()
  const storage = gated(testStorage())
  engine = await openEngine({ storage, limits: { openSessions: 2 } })
  const opening = [1, 2, 3].map(() => engine.stream.openRead({ seqNum: 0 }))
  const outcomes = await Promise.allSettled(opening)
  expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected'])
})

it('the holder of a token is refused as well, and leaves nothing', async () => {
  const { hw, clock } = engine
  const token = await hw.issueAccessToken({
    id: 'reader',
    scope: {
      basins: { prefix: '' },
      streams: { prefix: '' },
      opGroups: { stream: { read: true, write: true } },
    },
  })
  const held = hw.as(token).basin('basin').stream('stream')
  const cursors = [await held.openRead({ seqNum: 0 }), await held.openRead({ seqNum: 0 })]
  await expect(held.openRead({ seqNum: 0 })).rejects.toMatchObject(REFUSED)
  await expect(held.appendSession()).rejects.toMatchObject(REFUSED)
  for (const cursor of cursors) cursor!.close()
  await clock.settle()
  expect(hw.stats().openSessions).toBe(0)
})
