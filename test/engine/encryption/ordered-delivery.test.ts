import fc from 'fast-check'
import { expect, it } from 'vitest'
import { OrderedDelivery } from '../../../src/engine/encryption/ordered-delivery.ts'
import { deferred } from '../../support/index.ts'

it('delivers an available value at once', () => {
  const delivered: unknown[] = []
  const order = new OrderedDelivery()
  const outcome = {
    resolved: (value: unknown) => delivered.push(value),
    rejected: (e: unknown) => delivered.push(e),
  }
  order.add(() => 1, outcome)
  order.add(() => {
    throw new Error('no')
  }, outcome)
  expect(delivered).toEqual([1, new Error('no')])
  expect(order.pending).toBe(0)
})

it('delivers in the order of the calls, whenever and however each settles', async () => {
  const call = fc.record({ late: fc.boolean(), fails: fc.boolean(), nested: fc.boolean() })
  await fc.assert(
    fc.asyncProperty(fc.array(call, { maxLength: 12 }), fc.infiniteStream(fc.nat()), async (calls, picks) => {
      const order = new OrderedDelivery()
      const delivered: string[] = []
      const expected: string[] = []
      const settle: (() => void)[] = []
      const add = (name: string, { late, fails, nested }: (typeof calls)[number]) => {
        expected.push(name)
        const deliver = () => {
          delivered.push(name)
          if (nested) add(`${name}'`, { late: false, fails: false, nested: false })
        }
        const start = () => {
          if (late) {
            return new Promise<void>((resolve, reject) =>
              settle.push(() => (fails ? reject(new Error()) : resolve())),
            )
          }
          if (fails) throw new Error()
        }
        order.add(start, { resolved: deliver, rejected: deliver })
      }
      for (const [index, call] of calls.entries()) add(`${index}`, call)
      while (settle.length > 0) {
        settle.splice(picks.next().value % settle.length, 1)[0]!()
        await Promise.resolve()
      }
      await order.idle()
      expect(delivered).toEqual(expected)
      expect(order.pending).toBe(0)
    }),
  )
})

it('is idle only when nothing is pending', async () => {
  const order = new OrderedDelivery()
  const pending = deferred()
  order.add(() => pending.promise, { resolved: () => {}, rejected: () => {} })
  let idle = false
  void order.idle().then(() => {
    idle = true
  })
  await Promise.resolve()
  expect(idle).toBe(false)
  pending.resolve()
  await expect.poll(() => idle).toBe(true)
})

it('rejects pending values at the end, in order, delivers settled ones, and nothing twice', async () => {
  const order = new OrderedDelivery()
  const delivered: string[] = []
  const resolvers: (() => void)[] = []
  const add = (name: string, start: () => Promise<void> | undefined) =>
    order.add(start, {
      resolved: () => delivered.push(name),
      rejected: (error) => delivered.push(`${name}: ${(error as Error).message}`),
    })
  const pending = () => new Promise<void>((resolve) => resolvers.push(resolve))
  add('a', pending)
  add('b', () => undefined)
  add('c', pending)
  order.end(new Error('over'))
  expect(delivered).toEqual(['a: over', 'b', 'c: over'])
  await order.idle()
  add('d', () => {
    throw new Error('must not be started')
  })
  for (const resolve of resolvers) resolve()
  await Promise.resolve()
  expect(delivered).toEqual(['a: over', 'b', 'c: over', 'd: over'])
  expect(order.pending).toBe(0)
})
