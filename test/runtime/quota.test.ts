import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ByteSemaphore } from '../../src/runtime/quotas.ts'

/** Acquires bytes, and notes in `order` when it is admitted. */
function acquirer(budget: ByteSemaphore, order: string[]) {
  return (name: string, bytes: number) => budget.acquire(bytes, () => order.push(name))
}

describe('a byte semaphore', () => {
  it('admits requests that fit at once, up to the last byte', () => {
    const budget = new ByteSemaphore(10)
    const order: string[] = []
    const acquire = acquirer(budget, order)
    acquire('a', 4)
    acquire('b', 6)
    expect(order).toEqual(['a', 'b'])
    expect([budget.used, budget.waiting]).toEqual([10, 0])
    acquire('c', 1)
    expect(order).toEqual(['a', 'b'])
    expect([budget.used, budget.waiting]).toEqual([10, 1])
    budget.release(4)
    expect(order).toEqual(['a', 'b', 'c'])
    expect([budget.used, budget.waiting]).toEqual([7, 0])
  })

  it('admits nothing before an earlier waiter', () => {
    const budget = new ByteSemaphore(10)
    const order: string[] = []
    const acquire = acquirer(budget, order)
    acquire('a', 6)
    acquire('large', 8)
    acquire('small', 1)
    expect(order).toEqual(['a'])
    budget.release(6)
    expect(order).toEqual(['a', 'large', 'small'])
  })

  it('admits a request for more than the whole budget alone', () => {
    const budget = new ByteSemaphore(10)
    const order: string[] = []
    const acquire = acquirer(budget, order)
    acquire('huge', 99)
    acquire('b', 1)
    expect(order).toEqual(['huge'])
    budget.release(99)
    acquire('huge again', 99)
    expect(order).toEqual(['huge', 'b'])
    budget.release(1)
    expect(order).toEqual(['huge', 'b', 'huge again'])
    expect(budget.used).toBe(99)
  })

  it('queues a call that a callback makes', () => {
    const budget = new ByteSemaphore(10)
    const order: string[] = []
    const acquire = acquirer(budget, order)
    acquire('a', 10)
    budget.acquire(2, () => {
      acquire('nested', 1)
      order.push('b')
    })
    acquire('c', 2)
    budget.release(10)
    expect(order).toEqual(['a', 'b', 'c', 'nested'])
    expect([budget.used, budget.waiting]).toEqual([5, 0])
  })

  it('calls each callback once, also if it releases its bytes meanwhile', () => {
    const budget = new ByteSemaphore(10)
    const order: string[] = []
    const acquire = acquirer(budget, order)
    acquire('a', 10)
    let calls = 0
    budget.acquire(10, () => {
      order.push('b')
      // Bounded, so that a repeated call fails the test instead of overflowing the stack.
      if (++calls < 5) budget.release(10)
    })
    acquire('c', 10)
    acquire('d', 10)
    budget.release(10)
    expect(order).toEqual(['a', 'b', 'c'])
    expect([budget.used, budget.waiting]).toEqual([10, 1])
  })

  it('never exceeds the limit, admits in order, and admits all that fit', () => {
    const step = fc.oneof(
      fc.record({ kind: fc.constant('acquire' as const), bytes: fc.integer({ min: 1, max: 14 }) }),
      fc.record({ kind: fc.constant('release' as const), which: fc.nat(9) }),
    )
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60, size: 'max' }), (steps) => {
        const budget = new ByteSemaphore(10)
        const waiting: { bytes: number }[] = []
        const admitted: number[] = []
        for (const step of steps) {
          if (step.kind === 'acquire') {
            const waiter = { bytes: step.bytes }
            waiting.push(waiter)
            budget.acquire(step.bytes, () => {
              expect(waiting[0]).toBe(waiter)
              waiting.shift()
              admitted.push(waiter.bytes)
            })
          } else if (step.kind === 'release' && admitted.length > 0) {
            budget.release(admitted.splice(step.which % admitted.length, 1)[0]!)
          }
          const used = admitted.reduce((sum, bytes) => sum + bytes, 0)
          expect([budget.used, budget.waiting]).toEqual([used, waiting.length])
          expect(used <= 10 || admitted.length === 1).toBe(true)
          if (waiting.length > 0) expect(used > 0 && used + waiting[0]!.bytes > 10).toBe(true)
        }
      }),
    )
  })
})
