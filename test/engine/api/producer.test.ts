import { afterEach, describe, expect, it } from 'vitest'
import { open } from '../../../src/index.ts'
import { BATCH_ENCODED_BYTES_MAX } from '../../../src/model/limits.ts'
import type { StorageSession } from '../../../src/storage/contract.ts'
import {
  codeOf,
  deferred,
  gated,
  openEngine,
  readAll,
  type TestEngine,
  testClock,
  testStorage,
  wrapped,
} from '../../support/index.ts'

let engine: TestEngine
afterEach(() => engine.hw.close())

/** Two are within the metered limit of a batch, but, being tiny headers, beyond what a frame can hold. */
const halfBatch = () => ({ headers: Array.from({ length: 131_068 }, () => ['a', 'b'] as const) })

it('a producer keeps its batches within the frame limit', async () => {
  engine = await openEngine()
  const producer = engine.stream.producer({ lingerMs: 1_000 })
  const tickets = [await producer.submit(halfBatch()), await producer.submit(halfBatch())]
  tickets.push(await producer.submit('small'), await producer.submit('small'))
  await producer.close()
  for (const ticket of tickets) await ticket.ack()
  let records = 0
  for await (const batch of engine.stream.read({ seqNum: 0, count: 4 }).batches()) {
    expect(batch.data.length).toBeLessThanOrEqual(BATCH_ENCODED_BYTES_MAX)
    records += batch.count
  }
  expect(records).toBe(4)
})

it('a producer rejects a record that exceeds the frame limit, and continues', async () => {
  engine = await openEngine()
  const producer = engine.stream.producer()
  const tooMany = { headers: Array.from({ length: 262_142 }, () => ['a', 'b'] as const) }
  await expect(producer.submit(tooMany)).rejects.toMatchObject({ code: 'invalid' })
  await producer.submit('fine')
  await producer.close()
  expect((await engine.stream.checkTail()).seqNum).toBe(1)
})

describe('producer options', () => {
  for (const matchSeqNum of [-1, 1.5, Number.NaN, 2 ** 53]) {
    it(`reject matchSeqNum ${matchSeqNum}, as append does`, async () => {
      const clock = testClock({ now: 1_000_000 })
      const hw = await open({ storage: testStorage(), clock })
      const stream = hw.basin('basin').stream('s')
      expect(await stream.append('x', { matchSeqNum }).then(() => 'ok', codeOf)).toBe('invalid')
      const attempt = async () => {
        const producer = stream.producer({ matchSeqNum, lingerMs: 0 })
        const ticket = await producer.submit('x')
        await producer.flush()
        await ticket.ack()
      }
      expect(await attempt().then(() => 'ok', codeOf)).toBe('invalid')
      await hw.close()
    })
  }
})

describe('sessions and producers', () => {
  it('acks$ of an append session ends when the engine closes', async () => {
    const { hw, clock, stream } = await openEngine()
    const session = await stream.appendSession()
    let ended: unknown
    session.acks$.subscribe({ error: (error) => (ended = error.code), complete: () => (ended = 'complete') })
    await (await session.submit('a')).ack()
    await hw.close()
    await clock.settle()
    expect(ended).toBe('closed')
  })

  it('closing the engine leaves no linger timer', async () => {
    const { hw, clock, stream } = await openEngine()
    const producer = stream.producer({ lingerMs: 60_000 })
    await producer.submit('a')
    await hw.close()
    expect(clock.pending).toBe(0)
  })

  it('a producer applies back-pressure when records do not fill batches exactly', async () => {
    const storage = gated(testStorage())
    const { clock, stream } = await openEngine({
      storage,
      limits: { sessionInFlightBytes: 1_048_576, appendInFlightBytes: 1_048_576 },
    })
    const producer = stream.producer({ lingerMs: 60_000 })
    await producer.submit('first')
    await producer.flush()
    storage.holding = true
    let submitted = 0
    const write = async () => {
      for (let i = 0; i < 50; i++) {
        await producer.submit(new Uint8Array(600_000))
        submitted++
      }
    }
    const writing = write()
    await clock.settle()
    const inMemory = submitted
    storage.holding = false
    while (storage.held > 0) {
      storage.release()
      await clock.settle()
    }
    await writing
    await producer.close()
    expect(inMemory).toBeLessThan(10)
  })

  it('a producer copies the records that it accepts', async () => {
    const { stream } = await openEngine()
    const producer = stream.producer()
    const buffer = new Uint8Array(1)
    for (const letter of ['a', 'b', 'c']) {
      buffer[0] = letter.charCodeAt(0)
      await producer.submit(buffer)
    }
    await producer.close()
    expect(await readAll(stream)).toEqual(['a', 'b', 'c'])
  })

  it('submit after a failure rejects with that failure', async () => {
    const codes = new Set<string>()
    for (let offset = 0; offset < 40; offset++) {
      const { hw, stream } = await openEngine()
      const session = await stream.appendSession()
      await (await session.submit('a')).ack()
      const rejected = session.submit('x', { matchSeqNum: 7 })
      rejected.then((ticket) => ticket.ack()).catch(() => {})
      for (let i = 0; i < offset; i++) await null
      const outcome = await session.submit('y').then(
        (ticket) => ticket.ack().catch((error) => `${error.code}`),
        (error) => `submit: ${error.code}: ${error.message}`,
      )
      codes.add(String(outcome))
      await hw.close()
    }
    expect([...codes].filter((code) => code.includes('append session is closed'))).toEqual([])
  })
})

describe('after the engine has closed', () => {
  it('a producer accepts nothing and starts no timer', async () => {
    const { hw, clock, stream } = await openEngine()
    const before = stream.producer()
    await hw.close()
    const results = [
      await before.submit('a').then(() => 'taken', codeOf),
      await stream
        .producer()
        .submit('a')
        .then(() => 'taken', codeOf),
    ]
    expect({ results, pending: clock.pending }).toEqual({
      results: ['closed', 'closed'],
      pending: 0,
    })
  })

  it('an append session that was being opened ends', async () => {
    let hold: Promise<void> | undefined
    let waiting = 0
    const storage = wrapped(testStorage(), {}, (session: StorageSession) => ({
      async get(collection, key) {
        const found = await session.get(collection, key)
        if (hold !== undefined && collection === 'streams') {
          waiting++
          await hold
        }
        return found
      },
    }))
    const clock = testClock({ now: 1_000_000 })
    const first = await open({ storage, clock })
    await first
      .basin('basin')
      .ensureStream('s')
      .catch(async () => {
        await first.ensureBasin('basin')
        await first.basin('basin').ensureStream('s')
      })
    const hw = await open({ storage, clock })
    const gate = deferred()
    hold = gate.promise
    const opening = hw
      .basin('basin')
      .stream('s')
      .appendSession()
      .then((s) => s, codeOf)
    await clock.settle()
    expect(waiting).toBe(1)
    const closed = hw.close()
    gate.resolve()
    hold = undefined
    await closed
    const session = await opening
    if (typeof session !== 'string') {
      let ended = 'open'
      session.acks$.subscribe({
        complete: () => {
          ended = 'complete'
        },
        error: () => {
          ended = 'error'
        },
      })
      await clock.settle()
      expect(ended).toBe('error')
    }
    await first.close()
  })
})
