import { createRequire } from 'node:module'
import { Observable } from 'rxjs'
import { expect, it } from 'vitest'
import { bodies, openEngine } from '../../support/index.ts'

/** RxJS as an app has it beside the part of it that is in the build: another copy of every class. */
function anotherCopy(): typeof import('rxjs') {
  const require = createRequire(import.meta.url)
  const loaded = (id: string) => id.includes('/rxjs/')
  for (const id of Object.keys(require.cache).filter(loaded)) delete require.cache[id]
  return require('rxjs')
}

const rxjs = anotherCopy()

it('is another copy of RxJS', () => {
  expect(rxjs.Observable).not.toBe(Observable)
})

it('takes the observables of a stream, with operators', async () => {
  const { stream } = await openEngine()
  await stream.append(['a', 'b', 'c'])
  const { batches$, records$ } = stream.follow({ seqNum: 0 })
  expect(rxjs.isObservable(records$)).toBe(true)
  expect(bodies(await rxjs.firstValueFrom(batches$))).toEqual(['a', 'b', 'c'])
  const piped = records$.pipe(
    rxjs.concatMap(({ body }) => rxjs.of(body, body)),
    rxjs.take(3),
    rxjs.toArray(),
  )
  expect(await rxjs.firstValueFrom(piped)).toEqual(['a', 'a', 'b'])
  const joined = rxjs.merge(rxjs.from(records$), rxjs.NEVER).pipe(rxjs.take(2), rxjs.count())
  expect(await rxjs.firstValueFrom(joined)).toBe(2)
})

it('unsubscribes from a stream with its own subscription', async () => {
  const { stream, hw, clock } = await openEngine()
  const subscription = new rxjs.Subscription()
  subscription.add(stream.follow({}, { create: true }).records$.subscribe())
  await clock.settle()
  expect(hw.stats().waitingReads).toBe(1)
  subscription.unsubscribe()
  await clock.settle()
  expect(hw.stats().waitingReads).toBe(0)
})
