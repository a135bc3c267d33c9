import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Engine, Stream } from '../../../src/index.ts'
import {
  bodies,
  type GatedStorage,
  gated,
  openEngine,
  outcomeOf,
  type TestEngine,
  testStorage,
} from '../../support/index.ts'

const MIB = 1_048_576
const WHOLE = new Uint8Array(MIB - 8)
/** What is in flight at most, what waits at most, and what is beyond. */
const [IN_FLIGHT, WAITING, BEYOND] = [2, 3, 4]
const REFUSED = {
  code: 'rate_limited',
  status: 429,
  mayHaveEffects: false,
  retryable: true,
  field: 'limits.appendWaitingBytes',
  message: `limit exceeded: \`limits.appendWaitingBytes\` is ${WAITING * MIB}; the request had no effect`,
}

let storage: GatedStorage
let engine: TestEngine
beforeEach(async () => {
  storage = gated(testStorage())
  engine = await openEngine({
    storage,
    limits: { appendInFlightBytes: IN_FLIGHT * MIB, appendWaitingBytes: WAITING * MIB },
  })
  storage.holding = true
})
afterEach(async () => {
  releaseAll()
})

function releaseAll(): void {
  storage.holding = false
  storage.release()
}

const VIEWS: Record<string, (hw: Engine) => Promise<Engine>> = {
  'of the owner': async (hw) => hw,
  'of the holder of a token': async (hw) => {
    const opGroups = { stream: { read: true, write: true } }
    const scope = { basins: { prefix: '' }, streams: { prefix: '' }, opGroups }
    return hw.as(await hw.issueAccessToken({ id: 'writer', scope }))
  },
}

describe.each(Object.entries(VIEWS))('appends %s that are not awaited', (_, viewOf) => {
  let stream: Stream
  beforeEach(async () => {
    stream = (await viewOf(engine.hw)).basin('basin', { autoCreate: false }).stream('stream')
  })

  it('wait up to a limit, and are rejected beyond it', async () => {
    const appends = Array.from({ length: IN_FLIGHT + WAITING + BEYOND }, () => stream.append(WHOLE))
    const outcomes = Promise.all(appends.map(outcomeOf))
    await expect(appends.at(-1)).rejects.toMatchObject(REFUSED)
    await engine.clock.settle()
    expect(engine.hw.stats()).toMatchObject({
      appendBytesInFlight: IN_FLIGHT * MIB,
      waitingAppendBytes: WAITING * MIB,
    })
    releaseAll()
    expect(await outcomes).toEqual([
      ...Array(IN_FLIGHT + WAITING).fill('ok'),
      ...Array(BEYOND).fill('rate_limited'),
    ])
    expect((await stream.checkTail()).seqNum).toBe(IN_FLIGHT + WAITING)
  })

  it('succeed again once bytes are released', async () => {
    const first = Array.from({ length: IN_FLIGHT + WAITING + 1 }, () => outcomeOf(stream.append(WHOLE)))
    expect(await first.at(-1)).toBe('rate_limited')
    releaseAll()
    // In the turn in which one is acknowledged, its bytes are free.
    await first[0]
    expect(await outcomeOf(stream.append(WHOLE))).toBe('ok')
    await Promise.all(first)
    expect(engine.hw.stats()).toMatchObject({ appendBytesInFlight: 0, waitingAppendBytes: 0 })
  })
})

it('appends that wait for the lookup of their stream count towards the limit', async () => {
  const other = engine.hw.basin('basin').stream('not yet looked up')
  const appends = Array.from({ length: IN_FLIGHT + WAITING + 1 }, () => outcomeOf(other.append(WHOLE)))
  expect(await appends.at(-1)).toBe('rate_limited')
  releaseAll()
  expect((await Promise.all(appends)).slice(0, -1)).toEqual(Array(IN_FLIGHT + WAITING).fill('ok'))
})

describe('a session', () => {
  const numbered = (number: number) => `${number}`.padEnd(MIB - 8)

  it('ends at the first rejected append, so that none overtakes it', { tags: ['slow'] }, async () => {
    const { stream, hw } = engine
    const session = await stream.appendSession()
    const ended: unknown[] = []
    session.acks$.subscribe({ error: (error) => ended.push(error) })
    const submit = (number: number) => session.submit(numbered(number)).then((ticket) => ticket.ack())
    const submitted = Array.from({ length: IN_FLIGHT + WAITING + BEYOND }, (_, number) => submit(number))
    const outcomes = Promise.all(submitted.map(outcomeOf))
    await expect(submitted[IN_FLIGHT + WAITING]).rejects.toMatchObject(REFUSED)
    releaseAll()
    // There would be room again, but the session is over.
    await submitted[IN_FLIGHT + WAITING - 1]
    expect(await outcomeOf(submit(99))).toBe('rate_limited')
    expect(await outcomes).toEqual([
      ...Array(IN_FLIGHT + WAITING).fill('ok'),
      ...Array(BEYOND).fill('rate_limited'),
    ])
    await engine.clock.settle()
    expect(ended).toEqual([expect.objectContaining(REFUSED)])
    const stored: string[] = []
    for (let seqNum = 0; seqNum < IN_FLIGHT + WAITING; seqNum++) {
      stored.push(...bodies(await stream.readBatch({ seqNum, count: 1 })).map((body) => body.trim()))
    }
    expect(stored).toEqual(['0', '1', '2', '3', '4'])
    expect(hw.stats()).toMatchObject({ waitingAppendBytes: 0, openSessions: 0 })
  })

  it('that is awaited applies back-pressure, whichever caller reached the limit', {
    tags: ['slow'],
  }, async () => {
    const { stream, hw, clock } = engine
    const appends = [stream.append(WHOLE), stream.append(WHOLE)]
    await clock.settle()
    const session = await stream.appendSession()
    let submitted = 0
    const run = (async () => {
      for (let number = 0; number < 20; number++) {
        await session.submit(numbered(number))
        submitted++
      }
    })()
    await clock.settle()
    expect(submitted).toBe(0)
    expect(hw.stats().waitingAppendBytes).toBe(MIB)
    releaseAll()
    await Promise.all([run, ...appends])
    await session.close()
    expect((await stream.checkTail()).seqNum).toBe(22)
  })
})

it('a producer whose records are not awaited fails as a whole', async () => {
  const { stream, clock, hw } = engine
  const producer = stream.producer({ lingerMs: 0, recordsMax: 1 })
  const acks = Array.from({ length: IN_FLIGHT + WAITING + BEYOND }, async () =>
    (await producer.submit(WHOLE)).ack(),
  )
  const outcomes = Promise.all(acks.map(outcomeOf))
  await clock.settle()
  expect(hw.stats().waitingAppendBytes).toBe(WAITING * MIB)
  releaseAll()
  expect(await outcomes).toEqual([
    ...Array(IN_FLIGHT + WAITING).fill('ok'),
    ...Array(BEYOND).fill('rate_limited'),
  ])
  expect(await outcomeOf(producer.close())).toBe('rate_limited')
  expect(hw.stats()).toMatchObject({ waitingAppendBytes: 0, openSessions: 0 })
})
