import { afterEach, expect, it } from 'vitest'
import { BATCH_ENCODED_BYTES_MAX } from '../../src/model/limits.ts'
import { openEngine, type TestEngine } from './support.ts'

let engine: TestEngine
afterEach(() => engine.hw.close())

/** Two are within the metered limit of a batch, but, being tiny headers, beyond what a frame can hold. */
const halfBatch = () => ({ headers: Array.from({ length: 131_068 }, () => ['a', 'b'] as const) })

it('a producer makes no batch that fits no frame', async () => {
  engine = await openEngine()
  const producer = engine.stream.producer({ lingerMs: 1_000 })
  const tickets = [await producer.submit(halfBatch()), await producer.submit(halfBatch())]
  tickets.push(await producer.submit('small'), await producer.submit('small'))
  await producer.close()
  for (const ticket of tickets) await ticket.ack()
  let records = 0
  for await (const batch of engine.stream.read({ seqNum: 0, count: 4 })) {
    expect(batch.data.length).toBeLessThanOrEqual(BATCH_ENCODED_BYTES_MAX)
    records += batch.count
  }
  expect(records).toBe(4)
})

it('a producer refuses a record that fits no frame, and goes on', async () => {
  engine = await openEngine()
  const producer = engine.stream.producer()
  const tooMany = { headers: Array.from({ length: 262_142 }, () => ['a', 'b'] as const) }
  await expect(producer.submit(tooMany)).rejects.toMatchObject({ code: 'invalid' })
  await producer.submit('fine')
  await producer.close()
  expect((await engine.stream.checkTail()).seqNum).toBe(1)
})
