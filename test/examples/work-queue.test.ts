import { expect, it } from 'vitest'
import { claimable, EMPTY, type Event, isHeldBy, LEASE_MS, reduce } from '../../examples/work-queue/queue.ts'

const ADDED = { type: 'added', id: 'a', text: 'a' } as const
const claimed = (worker: string) => ({ type: 'claimed', id: 'a', worker }) as const
const done = (result: string) => ({ type: 'done', id: 'a', worker: 'one', result }) as const
const queueOf = (...events: readonly Event[]) =>
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
