import { describe, expect, it } from 'vitest'
import { BATCH_ENCODED_BYTES_MAX } from '../../../src/model/limits.ts'
import { codeOf, openEngine } from '../../support/index.ts'

/** Two are within the metered limit of a batch, but, being tiny headers, beyond what a frame can hold. */
const halfBatch = () => ({ headers: Array.from({ length: 131_068 }, () => ['a', 'b'] as const) })

it('a producer keeps its batches within the frame limit', { tags: ['slow'] }, async () => {
  const engine = await openEngine()
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

it('a producer rejects a record that exceeds the frame limit, and continues', {
  tags: ['slow'],
}, async () => {
  const engine = await openEngine()
  const producer = engine.stream.producer()
  const tooMany = { headers: Array.from({ length: 262_142 }, () => ['a', 'b'] as const) }
  await expect(producer.submit(tooMany)).rejects.toMatchObject({ code: 'invalid' })
  await producer.submit('fine')
  await producer.close()
  expect((await engine.stream.checkTail()).seqNum).toBe(1)
})

describe('sessions and producers', () => {
  it('acks$ of an append session ends when the engine closes', async () => {
    const engine = await openEngine()
    const { hw, clock, stream } = engine
    const session = await stream.appendSession()
    let ended: unknown
    session.acks$.subscribe({ error: (error) => (ended = error.code), complete: () => (ended = 'complete') })
    await (await session.submit('a')).ack()
    await hw.close()
    await clock.settle()
    expect(ended).toBe('closed')
  })

  it('closing the engine leaves no linger timer', async () => {
    const engine = await openEngine()
    const { hw, clock, stream } = engine
    const producer = stream.producer({ lingerMs: 60_000 })
    await producer.submit('a')
    await hw.close()
    expect(clock.pending).toBe(0)
  })
})

describe('a producer of a closed engine', () => {
  it('a producer accepts nothing and starts no timer', async () => {
    const engine = await openEngine()
    const { hw, clock, stream } = engine
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
})
