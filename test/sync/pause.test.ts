import { expect, test } from 'vitest'
import { pauseAfter } from '../../adapters/sync/pause.ts'
import { virtualClock } from '../../adapters/testing/index.ts'
import { HeadwaterError } from '../../src/index.ts'

test.each([
  ['ends early', undefined, true],
  ['lasts as long as the server asks', 60_000, false],
])('a pause %s when the page wakes up', async (_, retryAfterMs, isEnded) => {
  const clock = virtualClock()
  let wakeUp = () => {}
  let hasEnded = false
  const wakeUps = (callback: () => void) => {
    wakeUp = callback
    return () => {}
  }
  const context = { clock, random: () => 0.5, wakeUps, onState: () => {} }
  const error = new HeadwaterError('unavailable', 'busy', { retryAfterMs })
  const pause = pauseAfter(error, 1, context, new AbortController().signal)
  const ended = pause.then(() => {
    hasEnded = true
  })
  wakeUp()
  await clock.settle()
  expect(hasEnded).toBe(isEnded)
  await clock.advance('2m')
  await ended
})
