import fc from 'fast-check'
import { expect, it } from 'vitest'
import { Fifo } from '../../src/runtime/queues.ts'

it('returns the items in the order of their additions, as an array does', () => {
  const operation = fc.oneof(
    { weight: 5, arbitrary: fc.nat(100).map((count) => ['push', count] as const) },
    { weight: 5, arbitrary: fc.nat(100).map((count) => ['shift', count] as const) },
    { weight: 1, arbitrary: fc.constant(['clear', 0] as const) },
  )
  fc.assert(
    fc.property(fc.array(operation, { maxLength: 50 }), (operations) => {
      const queue = new Fifo<number>()
      const model: number[] = []
      let next = 0
      for (const [kind, count] of operations) {
        if (kind === 'clear') expect(queue.clear()).toEqual(model.splice(0))
        for (let i = 0; i < count; i++) {
          if (kind === 'shift') expect(queue.shift()).toBe(model.shift())
          else {
            model.push(next)
            queue.push(next++)
          }
        }
        expect([queue.length, queue.first, [...queue]]).toEqual([model.length, model[0], model])
      }
    }),
  )
})

// Shifting an array of this length moves a million items each time, which would take minutes.
it('takes a million items one by one', () => {
  const queue = new Fifo<number>()
  for (let i = 0; i < 1_000_000; i++) queue.push(i)
  let sum = 0
  for (let item = queue.shift(); item !== undefined; item = queue.shift()) sum += item
  expect([sum, queue.length]).toEqual([499_999_500_000, 0])
})
