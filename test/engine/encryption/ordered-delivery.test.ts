import fc from 'fast-check'
import { expect, it } from 'vitest'
import { OrderedDelivery } from '../../../src/engine/encryption/ordered-delivery.ts'

it('delivers an available value at once', () => {
  const told: unknown[] = []
  const order = new OrderedDelivery()
  const outcome = { resolved: (value: unknown) => told.push(value), rejected: (e: unknown) => told.push(e) }
  order.add(() => 1, outcome)
  order.add(() => {
    throw new Error('no')
  }, outcome)
  expect(told).toEqual([1, new Error('no')])
  expect(order.pending).toBe(0)
})

it('delivers in the order of the calls, whenever and however each settles', async () => {
  const one = fc.record({ late: fc.boolean(), fails: fc.boolean(), nested: fc.boolean() })
  await fc.assert(
    fc.asyncProperty(fc.array(one, { maxLength: 12 }), fc.infiniteStream(fc.nat()), async (calls, chance) => {
      const order = new OrderedDelivery()
      const told: string[] = []
      const expected: string[] = []
      const settle: (() => void)[] = []
      const add = (name: string, { late, fails, nested }: (typeof calls)[number]) => {
        expected.push(name)
        const tell = () => {
          told.push(name)
          if (nested) add(`${name}'`, { late: false, fails: false, nested: false })
        }
        const start = () => {
          if (late) {
            return new Promise<void>((go, fail) => settle.push(() => (fails ? fail(new Error()) : go())))
          }
          if (fails) throw new Error()
        }
        order.add(start, { resolved: tell, rejected: tell })
      }
      for (const [index, call] of calls.entries()) add(`${index}`, call)
      while (settle.length > 0) {
        settle.splice(chance.next().value % settle.length, 1)[0]!()
        await Promise.resolve()
      }
      await order.idle()
      expect(told).toEqual(expected)
      expect(order.pending).toBe(0)
    }),
  )
})

it('is idle only when nothing is pending', async () => {
  const order = new OrderedDelivery()
  let go = () => {}
  order.add(() => new Promise<void>((resolve) => (go = resolve)), { resolved: () => {}, rejected: () => {} })
  let idle = false
  void order.idle().then(() => {
    idle = true
  })
  await Promise.resolve()
  expect(idle).toBe(false)
  go()
  await expect.poll(() => idle).toBe(true)
})

it('rejects pending values at the end, in order, delivers settled ones, and nothing twice', async () => {
  const order = new OrderedDelivery()
  const told: string[] = []
  const go: (() => void)[] = []
  const add = (name: string, start: () => Promise<void> | undefined) =>
    order.add(start, {
      resolved: () => told.push(name),
      rejected: (error) => told.push(`${name}: ${(error as Error).message}`),
    })
  const late = () => new Promise<void>((resolve) => go.push(resolve))
  add('a', late)
  add('b', () => undefined)
  add('c', late)
  order.end(new Error('over'))
  expect(told).toEqual(['a: over', 'b', 'c: over'])
  await order.idle()
  add('d', () => {
    throw new Error('must not be started')
  })
  for (const resolve of go) resolve()
  await Promise.resolve()
  expect(told).toEqual(['a: over', 'b', 'c: over', 'd: over'])
  expect(order.pending).toBe(0)
})
