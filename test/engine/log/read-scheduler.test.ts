import { describe, expect, it } from 'vitest'
import { expectedBytes, ReadScheduler } from '../../../src/engine/log/read-scheduler.ts'
import { MIB } from '../../../src/model/limits.ts'
import { macrotask } from '../../../src/runtime/macrotask.ts'

const UNLIMITED = {
  count: Number.POSITIVE_INFINITY,
  bytes: Number.POSITIVE_INFINITY,
  until: Number.POSITIVE_INFINITY,
}

/** A scheduler whose first turn is used up, and the order in which it admits waiting reads. */
function fullTurn() {
  const scheduler = new ReadScheduler()
  for (let read = 0; read < 8; read++) expect(scheduler.admit(MIB, 0, () => false)).toBeUndefined()
  const order: string[] = []
  const wait = (name: string, bytes = MIB, deliveredBytes = 0, isClosed = false) => {
    const admitted = scheduler.admit(bytes, deliveredBytes, () => isClosed)
    expect(admitted).toBeInstanceOf(Promise)
    void admitted!.then(() => order.push(name))
  }
  return { scheduler, order, wait }
}

async function nextTurn(): Promise<void> {
  await macrotask()
  await macrotask()
}

describe('the scheduler of reads', () => {
  it('admits 8 MiB, and the rest in the next turn of the event loop', async () => {
    const { scheduler, order, wait } = fullTurn()
    wait('ninth')
    await Promise.resolve()
    expect(order).toEqual([])
    await nextTurn()
    expect(order).toEqual(['ninth'])
    for (let read = 0; read < 7; read++) expect(scheduler.admit(MIB, 0, () => false)).toBeUndefined()
    expect(scheduler.admit(MIB, 0, () => false)).toBeInstanceOf(Promise)
  })

  it('runs timers and sockets in between', async () => {
    const scheduler = new ReadScheduler()
    let batches = 0
    for (let read = 0; read < 100; read++) {
      void (async () => {
        await scheduler.admit(MIB, 0, () => false)
        batches++
      })()
    }
    const seen: number[] = []
    while (batches < 100) {
      await macrotask()
      seen.push(batches)
    }
    for (const [turn, count] of seen.entries()) expect(count).toBeLessThanOrEqual(8 * (turn + 2))
  })

  it.each([
    ['established', MIB, 8 * MIB],
    ['small', 65_536, 0],
  ])('prefers %s reads, and leaves an eighth to the others', async (name, bytes, deliveredBytes) => {
    const { order, wait } = fullTurn()
    for (let read = 0; read < 10; read++) wait('other', MIB, 8 * MIB - 1)
    for (let read = 0; read < 200; read++) wait(name, bytes, deliveredBytes)
    await nextTurn()
    const preferred = (7 * MIB) / bytes
    expect(order.slice(0, preferred + 1)).toEqual(['other', ...Array(preferred).fill(name)])
    while (order.length < 210) await macrotask()
    expect(order.filter((admitted) => admitted === 'other')).toHaveLength(10)
  })

  it('gives the whole turn to large reads when no other waits', async () => {
    const { order, wait } = fullTurn()
    for (let read = 0; read < 9; read++) wait(`${read}`)
    await nextTurn()
    expect(order.slice(0, 8)).toEqual(['0', '1', '2', '3', '4', '5', '6', '7'])
  })

  it('skips closed reads', async () => {
    const { order, wait } = fullTurn()
    for (let read = 0; read < 1_000; read++) wait('closed', MIB, 0, true)
    wait('open')
    await nextTurn()
    expect(order).toHaveLength(1_001)
  })
})

it.each([
  ['one record', 1_000_000, { count: 1 }, 16_384],
  ['10 records', 1_000_000, { count: 10 }, 40_960],
  ['a read near the tail', 3, {}, 16_384],
  ['a few bytes', 1_000_000, { bytes: 20_000 }, 20_000],
  ['everything', 1_000_000, {}, MIB],
])('estimates the size of a batch of %s', (_, count, limits, expected) => {
  expect(expectedBytes(count, { ...UNLIMITED, ...limits })).toBe(expected)
})
