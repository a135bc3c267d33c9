import { isObservable, type Observer, type Subscription } from 'rxjs'
import { describe, expect, it } from 'vitest'
import { Multicast } from '../../../src/api/multicast.ts'

/** Records what it receives. */
function recorder() {
  const received: unknown[] = []
  const observer: Observer<number> = {
    next: (value) => received.push(value),
    error: (error) => received.push(`error: ${error}`),
    complete: () => received.push('complete'),
  }
  return { told: received, observer }
}

describe('a multicast', () => {
  it('delivers later values to all subscribers in order of subscription', () => {
    const values = new Multicast<number>()
    const [first, second] = [recorder(), recorder()]
    values.next(0)
    values.observable.subscribe(first.observer)
    values.next(1)
    const subscription = values.observable.subscribe(second.observer)
    values.next(2)
    subscription.unsubscribe()
    values.next(3)
    values.complete()
    expect([first.told, second.told]).toEqual([[1, 2, 3, 'complete'], [2]])
  })

  it.each([
    ['completed', (values: Multicast<number>) => values.complete(), 'complete'],
    ['failed', (values: Multicast<number>) => values.error('why'), 'error: why'],
  ])('that %s notifies each subscriber once, even later ones, and emits nothing more', (_, end, last) => {
    const values = new Multicast<number>()
    const [first, second] = [recorder(), recorder()]
    values.observable.subscribe(first.observer)
    end(values)
    values.observable.subscribe(second.observer)
    values.next(1)
    values.complete()
    values.error('another')
    expect([first.told, second.told]).toEqual([[last], [last]])
  })

  it('is an observable to the package `rxjs`', () => {
    expect(isObservable(new Multicast().observable)).toBe(true)
  })

  it('skips subscribers that subscribe or unsubscribe during a delivery', () => {
    const values = new Multicast<number>()
    const [removed, added] = [recorder(), recorder()]
    let subscription: Subscription | undefined
    values.observable.subscribe(() => {
      subscription?.unsubscribe()
      if (added.told.length === 0) values.observable.subscribe(added.observer)
    })
    subscription = values.observable.subscribe(removed.observer)
    values.next(1)
    expect([removed.told, added.told]).toEqual([[], []])
  })
})
