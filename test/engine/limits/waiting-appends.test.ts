import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type Headwater, HeadwaterError, type Stream } from '../../../src/index.ts'
import { type GatedStorage, gated } from '../gated-storage.ts'
import { bodies, openEngine, type TestEngine, testStorage } from '../support.ts'
import { wrapped } from '../wrapped-storage.ts'

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
  message: `refused, and nothing was done: \`limits.appendWaitingBytes\`, ${WAITING * MIB}, is used up`,
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
  letGo()
  await engine.hw.close()
})

function letGo(): void {
  storage.holding = false
  storage.release()
}

const outcome = (promise: Promise<unknown>) =>
  promise.then(
    () => 'done',
    (error: unknown) => (HeadwaterError.is(error) ? error.code : String(error)),
  )

const VIEWS: Record<string, (hw: Headwater) => Promise<Headwater>> = {
  'of the owner': async (hw) => hw,
  'of the holder of a token': async (hw) => {
    const opGroups = { stream: { read: true, write: true } }
    const scope = { basins: { prefix: '' }, streams: { prefix: '' }, opGroups }
    return hw.as(await hw.issueAccessToken({ id: 'writer', scope }))
  },
}

describe.each(Object.entries(VIEWS))('appends %s that nobody awaits', (_, viewOf) => {
  let stream: Stream
  beforeEach(async () => {
    stream = (await viewOf(engine.hw)).basin('basin', { autoCreate: false }).stream('stream')
  })

  it('wait up to a limit, and are refused beyond it', async () => {
    const appends = Array.from({ length: IN_FLIGHT + WAITING + BEYOND }, () => stream.append(WHOLE))
    const outcomes = Promise.all(appends.map(outcome))
    await expect(appends.at(-1)).rejects.toMatchObject(REFUSED)
    await engine.clock.settle()
    expect(engine.hw.stats()).toMatchObject({
      appendBytesInFlight: IN_FLIGHT * MIB,
      waitingAppendBytes: WAITING * MIB,
    })
    letGo()
    expect(await outcomes).toEqual([
      ...Array(IN_FLIGHT + WAITING).fill('done'),
      ...Array(BEYOND).fill('rate_limited'),
    ])
    expect((await stream.checkTail()).seqNum).toBe(IN_FLIGHT + WAITING)
  })

  it('are made again when there is room', async () => {
    const first = Array.from({ length: IN_FLIGHT + WAITING + 1 }, () => outcome(stream.append(WHOLE)))
    expect(await first.at(-1)).toBe('rate_limited')
    letGo()
    // In the turn in which one is told, its room is free.
    await first[0]
    expect(await outcome(stream.append(WHOLE))).toBe('done')
    await Promise.all(first)
    expect(engine.hw.stats()).toMatchObject({ appendBytesInFlight: 0, waitingAppendBytes: 0 })
  })
})

it('appends that wait for their stream to be looked up count', async () => {
  const other = engine.hw.basin('basin').stream('not yet looked up')
  const appends = Array.from({ length: IN_FLIGHT + WAITING + 1 }, () => outcome(other.append(WHOLE)))
  expect(await appends.at(-1)).toBe('rate_limited')
  letGo()
  expect((await Promise.all(appends)).slice(0, -1)).toEqual(Array(IN_FLIGHT + WAITING).fill('done'))
})

it('appends that fail give their room back', async () => {
  storage.onAppend = () => {
    throw new Error('injected')
  }
  letGo()
  for (let i = 0; i < 3 * (IN_FLIGHT + WAITING); i++) {
    expect(await outcome(engine.stream.append(WHOLE))).toBe('storage')
  }
  expect(await outcome(engine.stream.append([]))).toBe('invalid')
  expect(engine.hw.stats()).toMatchObject({ appendBytesInFlight: 0, waitingAppendBytes: 0 })
  storage.onAppend = () => {}
})

describe('a session', () => {
  const numbered = (number: number) => `${number}`.padEnd(MIB - 8)

  it('ends with the first append that is refused: none overtakes it', async () => {
    const { stream, hw } = engine
    const session = await stream.appendSession()
    const ended: unknown[] = []
    session.acks$.subscribe({ error: (error) => ended.push(error) })
    const submit = (number: number) => session.submit(numbered(number)).then((ticket) => ticket.ack())
    const submitted = Array.from({ length: IN_FLIGHT + WAITING + BEYOND }, (_, number) => submit(number))
    const outcomes = Promise.all(submitted.map(outcome))
    await expect(submitted[IN_FLIGHT + WAITING]).rejects.toMatchObject(REFUSED)
    letGo()
    // There would be room again, but the session is over.
    await submitted[IN_FLIGHT + WAITING - 1]
    expect(await outcome(submit(99))).toBe('rate_limited')
    expect(await outcomes).toEqual([
      ...Array(IN_FLIGHT + WAITING).fill('done'),
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

  it('that is awaited holds back, whoever fills the room', async () => {
    const { stream, hw, clock } = engine
    const others = [stream.append(WHOLE), stream.append(WHOLE)]
    await clock.settle()
    const session = await stream.appendSession()
    let taken = 0
    const run = (async () => {
      for (let number = 0; number < 20; number++) {
        await session.submit(numbered(number))
        taken++
      }
    })()
    await clock.settle()
    expect(taken).toBe(0)
    expect(hw.stats().waitingAppendBytes).toBe(MIB)
    letGo()
    await Promise.all([run, ...others])
    await session.close()
    expect((await stream.checkTail()).seqNum).toBe(22)
  })
})

it('a producer whose records nobody awaits fails as a whole', async () => {
  const { stream, clock, hw } = engine
  const producer = stream.producer({ lingerMs: 0, recordsMax: 1 })
  const acks = Array.from({ length: IN_FLIGHT + WAITING + BEYOND }, async () =>
    (await producer.submit(WHOLE)).ack(),
  )
  const outcomes = Promise.all(acks.map(outcome))
  await clock.settle()
  expect(hw.stats().waitingAppendBytes).toBe(WAITING * MIB)
  letGo()
  expect(await outcomes).toEqual([
    ...Array(IN_FLIGHT + WAITING).fill('done'),
    ...Array(BEYOND).fill('rate_limited'),
  ])
  expect(await outcome(producer.close())).toBe('rate_limited')
  expect(hw.stats()).toMatchObject({ waitingAppendBytes: 0, openSessions: 0 })
})

it('what a producer has gathered counts while its session is being opened', async () => {
  let answer = () => {}
  const answered = new Promise<void>((go) => {
    answer = go
  })
  const slow = wrapped(testStorage(), {}, (session) => ({
    get: async (collection, key) => {
      if (key.endsWith('slow')) await answered
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
  const outcomes = Promise.all(acks.map(outcome))
  await expect(acks.at(-1)).rejects.toMatchObject(REFUSED)
  await expect(producer.submit('later')).rejects.toMatchObject(REFUSED)
  await expect(hw.basin('basin').stream('stream').append('other')).rejects.toMatchObject(REFUSED)
  answer()
  expect(await outcomes).toEqual([
    ...Array(IN_FLIGHT + WAITING).fill('done'),
    ...Array(BEYOND).fill('rate_limited'),
  ])
  await clock.settle()
  // The session has ended with the producer, which nobody closed.
  expect(hw.stats()).toMatchObject({ waitingAppendBytes: 0, appendBytesInFlight: 0, openSessions: 0 })
  expect((await stream.checkTail()).seqNum).toBe(IN_FLIGHT + WAITING)
  await hw.close()
})
