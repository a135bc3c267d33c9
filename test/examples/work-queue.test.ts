import { expect, it } from 'vitest'
// @ts-expect-error: a plain script without types
import { claimable, EMPTY, isHeldBy, LEASE_MS, reduce } from '../../examples/work-queue/queue.mjs'

const ADDED = { type: 'added', id: 'a', text: 'a' }
const claimed = (worker: string) => ({ type: 'claimed', id: 'a', worker })
const done = (result: string) => ({ type: 'done', id: 'a', worker: 'one', result })
const queueOf = (...events: readonly object[]) =>
  events.reduce((queue, value, i) => reduce(queue, { value, timestamp: 1_000 * i }), EMPTY)

it('a claimed job can be claimed again when its lease ends, and only then', () => {
  const queue = queueOf(ADDED, claimed('one'))
  expect(claimable(queue, 1_000 + LEASE_MS - 1)).toBeUndefined()
  expect(claimable(queue, 1_000 + LEASE_MS)).toMatchObject({ id: 'a' })
})

it('a worker whose job was taken over no longer holds it', () => {
  const queue = queueOf(ADDED, claimed('one'), claimed('two'))
  expect([isHeldBy(queue, 'a', 'one'), isHeldBy(queue, 'a', 'two')]).toEqual([false, true])
})

it('the first result of a job counts', () => {
  expect(queueOf(ADDED, done('first'), done('second')).jobs).toMatchObject([{ result: 'first' }])
})
