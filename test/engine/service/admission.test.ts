import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type Engine, open, type Stream } from '../../../src/index.ts'
import {
  bodies,
  codeOf,
  deferred,
  type GatedStorage,
  gated,
  openEngine,
  outcomeOf,
  type TestEngine,
  testClock,
  testStorage,
  wrapped,
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
  await engine.hw.close()
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

it('appends that fail release their share of the limit', async () => {
  storage.onAppend = () => {
    throw new Error('injected')
  }
  releaseAll()
  for (let i = 0; i < 3 * (IN_FLIGHT + WAITING); i++) {
    expect(await outcomeOf(engine.stream.append(WHOLE))).toBe('storage')
  }
  expect(await outcomeOf(engine.stream.append([]))).toBe('invalid')
  expect(engine.hw.stats()).toMatchObject({ appendBytesInFlight: 0, waitingAppendBytes: 0 })
  storage.onAppend = () => {}
})

describe('a session', () => {
  const numbered = (number: number) => `${number}`.padEnd(MIB - 8)

  it('ends at the first rejected append, so that none overtakes it', async () => {
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

  it('that is awaited applies back-pressure, whichever caller reached the limit', async () => {
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

it('batches of a producer count while its session is being opened', async () => {
  const gate = deferred()
  const slow = wrapped(testStorage(), {}, (session) => ({
    get: async (collection, key) => {
      if (key.endsWith('slow')) await gate.promise
      return session.get(collection, key)
    },
  }))
  const { hw, clock } = await openEngine({
    storage: slow,
    limits: { appendInFlightBytes: IN_FLIGHT * MIB, appendWaitingBytes: WAITING * MIB },
  })
  const stream = hw.basin('basin').stream('slow')
  const producer = stream.producer({ lingerMs: 0, recordsMax: 1 })
  const submit = async () => (await producer.submit(WHOLE)).ack()
  const acks = Array.from({ length: IN_FLIGHT + WAITING + BEYOND }, submit)
  const outcomes = Promise.all(acks.map(outcomeOf))
  await expect(acks.at(-1)).rejects.toMatchObject(REFUSED)
  await expect(producer.submit('later')).rejects.toMatchObject(REFUSED)
  await expect(hw.basin('basin').stream('stream').append('other')).rejects.toMatchObject(REFUSED)
  gate.resolve()
  expect(await outcomes).toEqual([
    ...Array(IN_FLIGHT + WAITING).fill('ok'),
    ...Array(BEYOND).fill('rate_limited'),
  ])
  await clock.settle()
  // The session has ended with the producer, which was not closed.
  expect(hw.stats()).toMatchObject({ waitingAppendBytes: 0, appendBytesInFlight: 0, openSessions: 0 })
  expect((await stream.checkTail()).seqNum).toBe(IN_FLIGHT + WAITING)
  await hw.close()
})

describe('the byte limit of an engine', () => {
  it('does not keep an append that waits for it from being made before the engine closes', async () => {
    const storage = gated(testStorage())
    const clock = testClock({ now: 1_000_000 })
    const hw = await open({ storage, clock, limits: { appendInFlightBytes: 1_048_576 } })
    const stream = hw.basin('basin').stream('s')
    await stream.append('x')
    storage.holding = true
    const body = new Uint8Array(700_000)
    const results = [
      stream.append(body),
      stream.append(body),
      hw.basin('basin').stream('t').append(body),
    ].map((p) => p.then(() => 'acked', codeOf))
    await clock.settle()
    const closing = hw.close()
    await clock.settle()
    storage.holding = false
    storage.release()
    expect(await Promise.all(results)).toEqual(['acked', 'acked', 'acked'])
    await closing
    expect(hw.stats()).toMatchObject({ appendBytesInFlight: 0, waitingAppends: 0, pendingAppends: 0 })
    expect(clock.pending).toBe(0)
  })
})
