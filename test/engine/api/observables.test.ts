import { Observable, type Observer, type Subscription } from 'rxjs'
import { describe, expect, it } from 'vitest'
import { Multicast } from '../../../src/engine/api/observables.ts'

/** Records what it receives. */
function noting() {
  const told: unknown[] = []
  const observer: Observer<number> = {
    next: (value) => told.push(value),
    error: (error) => told.push(`error: ${error}`),
    complete: () => told.push('complete'),
  }
  return { told, observer }
}

describe('a multicast', () => {
  it('delivers later values to all subscribers in order of subscription', () => {
    const values = new Multicast<number>()
    const [first, second] = [noting(), noting()]
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
  ])('that %s notifies every subscriber once, later ones too, and emits nothing more', (_, end, told) => {
    const values = new Multicast<number>()
    const [early, late] = [noting(), noting()]
    values.observable.subscribe(early.observer)
    end(values)
    values.observable.subscribe(late.observer)
    values.next(1)
    values.complete()
    values.error('another')
    expect([early.told, late.told]).toEqual([[told], [told]])
  })

  it('is an observable of the package `rxjs`', () => {
    expect(new Multicast().observable).toBeInstanceOf(Observable)
  })

  it('skips subscribers that subscribe or unsubscribe during a delivery', () => {
    const values = new Multicast<number>()
    const [left, joined] = [noting(), noting()]
    let leaving: Subscription | undefined
    values.observable.subscribe(() => {
      leaving?.unsubscribe()
      if (joined.told.length === 0) values.observable.subscribe(joined.observer)
    })
    leaving = values.observable.subscribe(left.observer)
    values.next(1)
    expect([left.told, joined.told]).toEqual([[], []])
  })
})
