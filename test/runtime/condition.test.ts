import { expect, test } from 'vitest'
import { Condition } from '../../src/runtime/condition.ts'

test('a wait ends with the change after which its condition holds', async () => {
  const changes = new Condition()
  let value = 0
  const ended: number[] = []
  const [first, second] = [1, 2].map((least) =>
    changes.until(() => value >= least).then(() => ended.push(least)),
  )
  changes.notify()
  value = 1
  changes.notify()
  await first
  expect(ended).toEqual([1])
  value = 2
  changes.notify()
  await second
  expect(ended).toEqual([1, 2])
})

test.each([true, false])('a condition that throws ends the wait: at once %s', async (isAtOnce) => {
  const changes = new Condition()
  let fails = isAtOnce
  const waiting = changes.until(() => {
    if (fails) throw new Error('failed')
    return false
  })
  fails = true
  if (!isAtOnce) changes.notify()
  await expect(waiting).rejects.toThrow('failed')
})

test('a wait whose signal aborts leaves no listener', async () => {
  const changes = new Condition()
  const stop = new AbortController()
  let checks = 0
  const waiting = changes.until(() => ++checks < 0, stop.signal)
  stop.abort(new Error('enough'))
  await expect(waiting).rejects.toThrow('enough')
  changes.notify()
  expect(checks).toBe(1)
})
