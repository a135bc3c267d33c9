import { describe, expect, it } from 'vitest'
import { virtualClock } from '../../../adapters/testing/index.ts'
import { ReadBudget, type ReadShare, readCost } from '../../../src/engine/log/read-budget.ts'
import { HeadwaterError } from '../../../src/model/errors.ts'
import { MIB } from '../../../src/model/limits.ts'

/** An eighth of the budget is reserved for small reads, so that 100 units remain. */
const UNIT = 7 * MIB
const LIMIT = 800 * MIB
/** What a small read may hold. */
const SMALL = readCost(65_536, 1_000)

/** A budget of 100 units for large reads, which close their share when they are ended. */
function budgetOf100() {
  const clock = virtualClock()
  const budget = new ReadBudget(LIMIT, clock)
  const ended: string[] = []
  const admitted: string[] = []
  const open = (name: string): ReadShare & { ask(units: number, isSmall?: boolean): void } => {
    const share = budget.open((reason) => {
      ended.push(name)
      expect(HeadwaterError.is(reason) && reason.code).toBe('rate_limited')
      share.close()
    })
    return Object.assign(share, {
      ask: (units: number, isSmall?: boolean) =>
        void Promise.resolve(share.hold(units * UNIT, isSmall)).then(() => admitted.push(name)),
    })
  }
  return { budget, clock, ended, admitted, open }
}

describe('the budget of reads', () => {
  it('admits reads that fit at once, and frees the bytes of closed ones', () => {
    const { budget, open } = budgetOf100()
    const one = open('one')
    expect(one.hold(60 * UNIT)).toBeUndefined()
    expect(one.hold(40 * UNIT)).toBeUndefined()
    expect(budget.used).toBe(40 * UNIT)
    expect(budget.isShort).toBe(false)
    one.correct(70 * UNIT)
    expect(budget.isShort).toBe(true)
    one.close()
    one.close()
    one.correct(50 * UNIT)
    expect(one.hold(50 * UNIT)).toBeUndefined()
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
    expect(budget.used).toBe(100 * UNIT)
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

  it('admits small reads while large ones use up their part, and small ones first', async () => {
    const { budget, clock, admitted, open } = budgetOf100()
    const large = open('large')
    large.ask(100)
    open('waits').ask(50)
    const small = open('small')
    small.ask(1, true)
    await clock.settle()
    expect(admitted).toEqual(['large', 'small'])
    // What it holds is known now: the waiting large read still waits.
    expect(small.correct(SMALL)).toBe(true)
    open('fills').ask(14, true)
    for (const name of ['a', 'b']) open(name).ask(1, true)
    await clock.settle()
    expect(admitted).toEqual(['large', 'small', 'fills'])
    expect(budget.used).toBeLessThanOrEqual(LIMIT)
    large.correct(99 * UNIT)
    await clock.settle()
    expect(admitted).toEqual(['large', 'small', 'fills', 'a'])
  })

  it('lets a read that turns out to be large wait like one', async () => {
    const { budget, clock, admitted, open } = budgetOf100()
    const large = open('large')
    large.ask(95)
    const surprise = open('surprise')
    surprise.ask(10, true)
    expect(surprise.correct(4 * UNIT)).toBe(true)
    surprise.ask(10, true)
    expect(surprise.correct(6 * UNIT)).toBe(false)
    expect(budget.used).toBe(95 * UNIT)
    surprise.ask(6)
    await clock.settle()
    expect(admitted).toEqual(['large', 'surprise', 'surprise'])
    large.close()
    await clock.settle()
    expect(admitted).toEqual(['large', 'surprise', 'surprise', 'surprise'])
  })

  it('ends no read for a small one that fits', async () => {
    const { clock, ended, open } = budgetOf100()
    open('stalled').ask(100)
    await clock.advance('5s')
    const small = open('small')
    small.ask(1, true)
    await clock.advance('5s')
    expect(ended).toEqual([])
  })

  it('admits reads that gave back their memory before new ones', async () => {
    const { budget, clock, admitted } = budgetOf100()
    const paused = budget.open(() => paused.correct(0))
    void Promise.resolve(paused.hold(100 * UNIT)).then(() => admitted.push('paused'))
    const other = budget.open(() => other.close())
    await clock.advance('2s')
    void Promise.resolve(other.hold(100 * UNIT)).then(() => admitted.push('other'))
    await clock.settle()
    const later = budget.open(() => {})
    void Promise.resolve(later.hold(100 * UNIT)).then(() => admitted.push('new'))
    void Promise.resolve(paused.hold(100 * UNIT)).then(() => admitted.push('paused again'))
    other.close()
    await clock.settle()
    expect(admitted).toEqual(['paused', 'other', 'paused again'])
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
  large.correct(40 * UNIT)
  await clock.settle()
  expect(admitted).toEqual(['large', 'new'])
})
