import { expect, it } from 'vitest'
import { type Clock, open } from '../../../../src/index.ts'
import { testClock, testStorage } from '../../../support/index.ts'
import { EVERYTHING, outcome } from './support.ts'

/** A machine that slept: the time of day advances, timers do not. */
function sleepingClock() {
  const inner = testClock()
  let sleptMs = 0
  const clock: Clock = { now: () => inner.now() + sleptMs, schedule: (...a) => inner.schedule(...a) }
  return { clock, inner, sleep: (ms: number) => (sleptMs += ms) }
}

it('a session ends within a second of its expiry, even after the machine slept', async () => {
  const { clock, inner, sleep } = sleepingClock()
  const hw = await open({ storage: testStorage(), clock })
  await hw
    .basin('basin')
    .createStream('stream')
    .catch(() => hw.ensureBasin('basin'))
  await hw.basin('basin').ensureStream('stream')
  const view = hw.as(
    await hw.issueAccessToken({ id: 't', expiresAt: new Date(clock.now() + 3_600_000), scope: EVERYTHING }),
  )
  const cursor = (await view.basin('basin').stream('stream').openCursor({}, {}))!
  const ends: string[] = []
  void outcome(Promise.resolve(cursor.next())).then((c) => ends.push(c))
  sleep(2 * 3_600_000)
  await inner.advance('2s')
  expect(await outcome(view.basin('basin').stream('stream').checkTail())).toBe('authn')
  expect(ends).toEqual(['authn'])
})

it('a session continues while its token is valid, even if the clock is set back', async () => {
  const { clock, inner, sleep } = sleepingClock()
  const hw = await open({ storage: testStorage(), clock })
  await hw.ensureBasin('basin')
  await hw.basin('basin').ensureStream('stream')
  const view = hw.as(
    await hw.issueAccessToken({ id: 't', expiresAt: new Date(clock.now() + 60_000), scope: EVERYTHING }),
  )
  const cursor = (await view.basin('basin').stream('stream').openCursor({}, {}))!
  const ends: string[] = []
  void outcome(Promise.resolve(cursor.next())).then((c) => ends.push(c))
  sleep(-3_600_000)
  await inner.advance('61s')
  expect(await outcome(view.basin('basin').stream('stream').checkTail())).toBe('ok')
  expect(ends).toEqual([])
})
