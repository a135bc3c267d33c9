import { describe, expect, it } from 'vitest'
import { virtualClock } from '../../../adapters/testing/index.ts'
import { ReadBudget, type ReadShare, readCost } from '../../../src/engine/log/read-budget.ts'
import { HeadwaterError } from '../../../src/model/errors.ts'
import { MIB } from '../../../src/model/limits.ts'

/** A budget of 100 bytes, and reads that close their share when they are ended. */
function budgetOf100() {
  const clock = virtualClock()
  const budget = new ReadBudget(100, clock)
  const ended: string[] = []
  const admitted: string[] = []
  const open = (name: string): ReadShare & { ask(bytes: number): void } => {
    const share = budget.open((reason) => {
      ended.push(name)
      expect(HeadwaterError.is(reason) && reason.code).toBe('rate_limited')
      share.close()
    })
    return Object.assign(share, {
      ask: (bytes: number) => void Promise.resolve(share.hold(bytes)).then(() => admitted.push(name)),
    })
  }
  return { budget, clock, ended, admitted, open }
}

describe('the budget of reads', () => {
  it('admits reads that fit at once, and frees the bytes of closed ones', () => {
    const { budget, open } = budgetOf100()
    const one = open('one')
    expect(one.hold(60)).toBeUndefined()
    expect(one.hold(40)).toBeUndefined()
    expect(budget.used).toBe(40)
    expect(budget.isShort).toBe(false)
    one.correct(70)
    expect(budget.isShort).toBe(true)
    one.close()
    one.close()
    one.correct(50)
    expect(one.hold(50)).toBeUndefined()
    expect(budget.used).toBe(0)
  })

  it('admits a read that is larger than the whole budget alone', async () => {
    const { open, clock, admitted } = budgetOf100()
    const small = open('small')
    small.ask(10)
    open('large').ask(500)
    await clock.settle()
    expect(admitted).toEqual(['small'])
    small.close()
    await clock.settle()
    expect(admitted).toEqual(['small', 'large'])
  })

  it('queues new reads in order, and ends those without progress for a second', async () => {
    const { budget, clock, ended, admitted, open } = budgetOf100()
    for (const name of ['a', 'b', 'c', 'd']) open(name).ask(50)
    await clock.settle()
    expect(admitted).toEqual(['a', 'b'])
    await clock.advance('999ms')
    expect(ended).toEqual([])
    await clock.advance('1s')
    expect(ended).toEqual(['a', 'b'])
    expect(admitted).toEqual(['a', 'b', 'c', 'd'])
    await clock.advance('1h')
    // Nothing waits, so no read has to free memory.
    expect(ended).toEqual(['a', 'b'])
    expect(budget.used).toBe(100)
    expect(clock.pending).toBe(0)
  })

  it('ends the slowest reads, and no more than needed', async () => {
    const { clock, ended, open } = budgetOf100()
    const reads = ['a', 'b', 'c', 'd'].map((name) => {
      const read = open(name)
      read.ask(25)
      return read
    })
    await clock.advance('600ms')
    reads[0]!.moved()
    await clock.advance('5s')
    open('new').ask(40)
    await clock.advance('1s')
    expect(ended).toEqual(['b', 'c'])
  })

  it('puts reads in progress before new ones', async () => {
    const { clock, admitted, open } = budgetOf100()
    const moving = open('moving')
    moving.ask(100)
    open('new').ask(50)
    await clock.settle()
    for (let batch = 0; batch < 3; batch++) moving.ask(100)
    await clock.settle()
    expect(admitted).toEqual(Array(4).fill('moving'))
  })

  it('puts a read that has waited for 30 seconds before reads in progress', async () => {
    const { clock, admitted, ended, open } = budgetOf100()
    const moving = open('moving')
    moving.ask(100)
    open('new').ask(50)
    for (let half = 0; half < 59; half++) {
      await clock.advance('500ms')
      moving.ask(100)
    }
    await clock.settle()
    expect(admitted).not.toContain('new')
    await clock.advance('500ms')
    moving.ask(100)
    await clock.settle()
    expect(admitted.at(-1)).toBe('new')
    expect(ended).toEqual([])
  })

  it('removes a closed read from the queue', async () => {
    const { clock, admitted, open } = budgetOf100()
    const first = open('first')
    first.ask(100)
    const second = open('second')
    second.ask(100)
    open('third').ask(100)
    second.close()
    first.close()
    await clock.settle()
    expect(admitted).toEqual(['first', 'third'])
  })
})

it('counts one batch twice: as it is stored and as it is sent', () => {
  expect(readCost(MIB, 1_000)).toBe(2 * MIB + 64_000)
  expect(readCost(4 * MIB, 8_000)).toBe(5 * MIB + 64_000)
})

it('admits waiting reads as soon as another needs less', async () => {
  const { clock, admitted, open } = budgetOf100()
  const large = open('large')
  large.ask(90)
  open('new').ask(50)
  await clock.settle()
  large.correct(40)
  await clock.settle()
  expect(admitted).toEqual(['large', 'new'])
})
