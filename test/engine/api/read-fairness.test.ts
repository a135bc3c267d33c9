import { expect, it, onTestFinished } from 'vitest'
import { memory } from '../../../adapters/storage/memory/index.ts'
import { open } from '../../../src/index.ts'
import { MIB } from '../../../src/model/limits.ts'
import { macrotask } from '../../../src/runtime/macrotask.ts'
import { testClock } from '../../support/index.ts'

const READS = 15
const BATCHES = 8

/** Many reads of a large stream that begin at once, and another stream. */
async function startBurst() {
  // How many turns pass while a storage works says nothing about the share of a turn that reads take.
  const hw = await open({ storage: memory(), clock: testClock() })
  onTestFinished(() => hw.close())
  const [large, other] = [hw.basin('basin').stream('large'), hw.basin('basin').stream('other')]
  const batch = Array.from({ length: 15 }, () => 'x'.repeat(65_536))
  for (let count = 0; count < BATCHES; count++) await large.append(batch)
  await other.append(Array.from({ length: 200 }, () => 'short'))
  const burst = { deliveredBytes: 0, isOver: false }
  const query = { seqNum: 0, count: BATCHES * batch.length }
  const reads = Array.from({ length: READS }, async () => {
    for await (const { meteredBytes } of large.follow(query).batches()) {
      burst.deliveredBytes += meteredBytes
    }
  })
  const done = Promise.all(reads).then(() => {
    burst.isOver = true
  })
  return { burst, other, done }
}

it('delivers at most one batch to all reads together in a turn of the event loop', async () => {
  const { burst, done } = await startBurst()
  let delivered = 0
  while (!burst.isOver) {
    await macrotask()
    // The turn that began in between may have delivered one too.
    expect(burst.deliveredBytes - delivered).toBeLessThanOrEqual(2 * MIB)
    delivered = burst.deliveredBytes
  }
  await done
  expect(delivered).toBeGreaterThan(READS * 7 * MIB)
})

it.each<[string, (stream: Awaited<ReturnType<typeof startBurst>>['other']) => Promise<unknown>]>([
  ['an append', (stream) => stream.append('meanwhile')],
  ['a read of a few records', (stream) => stream.readBatch({ seqNum: 0, count: 10 })],
  ['a read of many short records', (stream) => stream.readBatch({ seqNum: 0 })],
])('does %s of another stream before the rest of a burst', async (_, act) => {
  const { burst, other, done } = await startBurst()
  while (burst.deliveredBytes < 8 * MIB) await macrotask()
  const before = burst.deliveredBytes
  await act(other)
  expect(burst.deliveredBytes - before).toBeLessThanOrEqual(8 * MIB)
  expect(burst.isOver).toBe(false)
  await done
})

it('lets others have turns between batches of short records', async () => {
  const hw = await open({ storage: memory(), clock: testClock() })
  onTestFinished(() => hw.close())
  const stream = hw.basin('basin').stream('short')
  const batch = Array.from({ length: 1000 }, () => 'x')
  for (let count = 0; count < 40; count++) await stream.append(batch)
  let [delivered, isOver] = [0, false]
  const reading = (async () => {
    for await (const _ of stream.follow({ seqNum: 0, count: 40_000 }).batches()) delivered++
    isOver = true
  })()
  while (!isOver) {
    const before = delivered
    await macrotask()
    expect(delivered - before).toBeLessThanOrEqual(30)
  }
  await reading
  expect(delivered).toBe(40)
})
