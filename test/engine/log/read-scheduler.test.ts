import { describe, expect, it } from 'vitest'
import { expectedBytes, ReadScheduler } from '../../../src/engine/log/read-scheduler.ts'
import { MIB } from '../../../src/model/limits.ts'
import { macrotask } from '../../../src/runtime/macrotask.ts'

const UNLIMITED = {
  count: Number.POSITIVE_INFINITY,
  bytes: Number.POSITIVE_INFINITY,
  until: Number.POSITIVE_INFINITY,
}
const SMALL = 65_536

/** A scheduler whose first turn is used up, and the order in which it admits waiting reads. */
function fullTurn() {
  const scheduler = new ReadScheduler()
  expect(scheduler.admit(MIB, 0, () => false)).toBeUndefined()
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
  it('admits one batch, and the next in the next turn of the event loop', async () => {
    const { scheduler, order, wait } = fullTurn()
    wait('second')
    await Promise.resolve()
    expect(order).toEqual([])
    await nextTurn()
    expect(order).toEqual(['second'])
    expect(scheduler.admit(1, 0, () => false)).toBeInstanceOf(Promise)
  })

  it('admits small reads of 1 MiB together in one turn', () => {
    const scheduler = new ReadScheduler()
    for (let read = 0; read < MIB / SMALL; read++) {
      expect(scheduler.admit(SMALL, 0, () => false)).toBeUndefined()
    }
    expect(scheduler.admit(SMALL, 0, () => false)).toBeInstanceOf(Promise)
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
    for (const [turn, count] of seen.entries()) expect(count).toBeLessThanOrEqual(turn + 2)
  })

  it('admits a small read before all large ones, and before those that wait for longer', async () => {
    const { scheduler, order, wait } = fullTurn()
    for (let read = 0; read < 500; read++) wait('new')
    for (let read = 0; read < 10; read++) wait('established', MIB, 8 * MIB)
    await nextTurn()
    const before = order.length
    wait('small', SMALL)
    await nextTurn()
    expect(order.slice(before)).toContain('small')
    expect(order.length).toBeLessThanOrEqual(before + 3)
    expect(scheduler.admit(MIB, 0, () => false)).toBeInstanceOf(Promise)
  })

  it.each([
    ['established', MIB, 7],
    ['small', SMALL, 8],
  ])('gives %s reads most of the turns while new ones wait', async (name, bytes, share) => {
    const { order, wait } = fullTurn()
    for (let read = 0; read < 100; read++) wait('new', MIB, 8 * MIB - 1)
    for (let read = 0; read < (60 * MIB) / bytes; read++) wait(name, bytes, 8 * MIB)
    while (order.filter((admitted) => admitted === 'new').length < 6) await macrotask()
    const preferred = order.filter((admitted) => admitted === name).length * bytes
    expect(preferred).toBeGreaterThan((5 * share - 1) * MIB)
    expect(preferred).toBeLessThan((6 * share + 1) * MIB)
  })

  it('gives all turns to large reads when no other waits', async () => {
    const { order, wait } = fullTurn()
    for (let read = 0; read < 9; read++) wait(`${read}`)
    for (let turn = 0; turn < 9; turn++) await macrotask()
    await macrotask()
    expect(order).toEqual(['0', '1', '2', '3', '4', '5', '6', '7', '8'])
  })

  it('gives reads that begin to wait no turns for the time before', async () => {
    const { order, wait } = fullTurn()
    for (let read = 0; read < 60; read++) wait('new')
    for (let turn = 0; turn < 30; turn++) await macrotask()
    const before = order.length
    for (let read = 0; read < 60; read++) wait('established', MIB, 8 * MIB)
    for (let turn = 0; turn < 25; turn++) await macrotask()
    expect(order.slice(before).filter((admitted) => admitted === 'new').length).toBeGreaterThanOrEqual(3)
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
  ['one record', 1_000_000, { count: 1 }, 1_024, 16_384],
  ['100 records', 1_000_000, { count: 100 }, 1_024, 102_400],
  ['100 short records', 1_000_000, { count: 100 }, 20, 16_384],
  ['a read near the tail', 3, {}, 1_024, 16_384],
  ['a few bytes', 1_000_000, { bytes: 20_000 }, 1_024, 20_000],
  ['everything', 1_000_000, {}, 20, MIB],
])('estimates the size of a batch of %s', (_, count, limits, recordBytes, expected) => {
  expect(expectedBytes(count, { ...UNLIMITED, ...limits }, recordBytes)).toBe(expected)
})
