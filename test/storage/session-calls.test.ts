import { expect, it } from 'vitest'
import { SessionCalls } from '../../src/storage/session-calls.ts'
import { deferred } from '../support/index.ts'

const CLOSED = { kind: 'closed', nothingWritten: true }

it('rejects calls after close without running them', async () => {
  const calls = new SessionCalls()
  const closing = calls.close(() => {})
  expect(calls.isClosed).toBe(true)
  let runs = 0
  const work = async () => runs++
  await expect(calls.run(work)).rejects.toMatchObject(CLOSED)
  await closing
  await expect(calls.run(work)).rejects.toMatchObject(CLOSED)
  expect(runs).toBe(0)
})

it('releases once, after the calls in flight have settled, also those that fail', async () => {
  const calls = new SessionCalls()
  const [first, second] = [deferred<number>(), deferred<number>()]
  const results = Promise.allSettled([calls.run(() => first.promise), calls.run(() => second.promise)])
  const events: string[] = []
  const closings = [calls.close(() => events.push('released')), calls.close(() => events.push('again'))]
  first.resolve(1)
  await first.promise
  await Promise.resolve()
  expect(events).toEqual([])
  second.reject(new Error('failed'))
  await results
  await Promise.all(closings)
  expect(events).toEqual(['released'])
})

it('rejects every close with the failure of the release', async () => {
  const calls = new SessionCalls()
  const release = () => Promise.reject(new Error('stuck'))
  await expect(calls.close(release)).rejects.toThrow('stuck')
  await expect(calls.close(release)).rejects.toThrow('stuck')
})
