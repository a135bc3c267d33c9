import fc from 'fast-check'
import {
  catchError,
  concatMap,
  concatWith,
  debounce,
  EMPTY,
  exhaustMap,
  filter,
  finalize,
  firstValueFrom,
  from,
  isObservable,
  lastValueFrom,
  map,
  mergeMap,
  merge as mergeOf,
  NEVER,
  type Observer,
  type OperatorFunction,
  of,
  Observable as RxObservable,
  type Subscriber as RxSubscriber,
  repeat,
  retry,
  Subject,
  Subscription,
  scan,
  share,
  startWith,
  switchMap,
  take,
  takeUntil,
  tap,
  toArray,
  withLatestFrom,
} from 'rxjs'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { Observable } from '../../src/runtime/observable.ts'

type Class = typeof RxObservable<number>

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

/** What runtimes report as uncaught. Fake timers throw it where they are run. */
function uncaught(): unknown[] {
  const errors: unknown[] = []
  while (vi.getTimerCount() > 0) {
    try {
      vi.runAllTimers()
    } catch (error) {
      errors.push(error)
    }
  }
  return errors
}

type Step = 'next' | 'error' | 'complete' | 'throw' | 'unsubscribe'

/** A source that performs steps when it is subscribed to, and the rest when it is asked to go on. */
function sourceOf(observables: Class, steps: readonly Step[], pausesAfter: number, log: unknown[]) {
  let subscribers = 0
  const resumes = new Set<() => void>()
  const perform = (step: Step, subscriber: RxSubscriber<number>, value: number) => {
    if (step === 'next') subscriber.next(value)
    else if (step === 'error') subscriber.error(`error ${value}`)
    else if (step === 'complete') subscriber.complete()
    else if (step === 'unsubscribe') subscriber.unsubscribe()
    else throw new Error(`thrown ${value}`)
    log.push(`closed: ${subscriber.closed}`)
  }
  const observable = new observables((subscriber) => {
    // Repetition must come to an end.
    if (++subscribers > 3) return subscriber.complete()
    log.push('subscribed')
    subscriber.add(() => log.push('torn down first'))
    let next = 0
    const goOn = (end: number) => {
      while (next < end) perform(steps[next++]!, subscriber, next)
    }
    resumes.add(() => goOn(steps.length))
    goOn(Math.min(pausesAfter, steps.length))
    return () => log.push('torn down')
  })
  const resume = () => {
    for (const goOn of resumes) {
      try {
        goOn()
      } catch (error) {
        log.push(`resuming failed: ${error}`)
      }
    }
  }
  return { observable, resume }
}

const OPERATORS: Record<string, (observables: Class) => OperatorFunction<number, number>> = {
  map: () => map((value) => value + 1),
  'map, which throws': () =>
    map((value) => {
      if (value % 100 === 1) throw new Error('of an operator')
      return value
    }),
  filter: () => filter((value) => value % 2 === 0),
  take: () => take(2),
  scan: () => scan((sum, value) => sum + value, 0),
  startWith: () => startWith(-1),
  concatMap: () => concatMap((value) => of(value, value)),
  'mergeMap of the same class': (observables) =>
    mergeMap((value) => new observables((subscriber) => subscriber.next(value))),
  switchMap: () => switchMap((value) => mergeOf(of(value), NEVER)),
  exhaustMap: () => exhaustMap((value) => (value % 2 === 0 ? of(value) : EMPTY)),
  concatWith: (observables) => concatWith(new observables((subscriber) => subscriber.complete())),
  catchError: () => catchError(() => of(-2)),
  retry: () => retry(1),
  repeat: () => repeat(2),
  share: () => share(),
  debounce: () => debounce(() => of(0)),
  withLatestFrom: (observables) => (source) =>
    source.pipe(
      withLatestFrom(new observables((subscriber) => subscriber.next(5))),
      map(([left, right]) => left + right),
    ),
  takeUntil: (observables) => takeUntil(new observables((subscriber) => subscriber.complete())),
  tap: () => tap(() => {}),
  finalize: () => finalize(() => {}),
}

const step = fc.constantFrom<Step>(
  'next',
  'next',
  'next',
  'next',
  'error',
  'complete',
  'throw',
  'unsubscribe',
)
const scenario = fc.record({
  steps: fc.array(step, { maxLength: 6 }),
  pausesAfter: fc.nat(6),
  operators: fc.array(fc.constantFrom(...Object.keys(OPERATORS)), { maxLength: 3 }),
  members: fc.subarray<keyof Observer<number>>(['next', 'error', 'complete']),
  throwsAt: fc.option(fc.constantFrom<keyof Observer<number>>('next', 'error', 'complete'), {
    nil: undefined,
  }),
  /** The source goes on while the observer is called. */
  reenters: fc.boolean(),
  leaves: fc.boolean(),
  isCopied: fc.boolean(),
})

type Scenario = typeof scenario extends fc.Arbitrary<infer Value> ? Value : never

/** Everything that observers, sources and the runtime can tell of a scenario. */
function traceOf(
  observables: Class,
  { steps, pausesAfter, operators, members, throwsAt, reenters, leaves, isCopied }: Scenario,
): unknown[] {
  const log: unknown[] = []
  const { observable, resume } = sourceOf(observables, steps, pausesAfter, log)
  const piped = operators.reduce(
    (source, name) => source.pipe(OPERATORS[name]!(observables)),
    isCopied ? from(observable) : observable,
  )
  const observer: Partial<Observer<number>> = Object.fromEntries(
    members.map((member) => [
      member,
      (value: unknown) => {
        log.push([member, value instanceof Error ? value.message : value])
        if (reenters) resume()
        if (throwsAt === member) throw new Error(`of ${member}`)
      },
    ]),
  )
  const subscription = piped.subscribe(observer)
  subscription.add(() => log.push('ended'))
  log.push(`subscription closed: ${subscription.closed}`)
  resume()
  if (leaves) subscription.unsubscribe()
  log.push(`subscription closed: ${subscription.closed}`)
  resume()
  for (const error of uncaught()) log.push(`uncaught: ${error instanceof Error ? error.message : error}`)
  return log
}

describe('an observable', () => {
  it('does what the class of RxJS does, alone and under operators', () => {
    fc.assert(
      fc.property(scenario, (given) => {
        expect(traceOf(Observable, given)).toEqual(traceOf(RxObservable, given))
      }),
    )
  })

  it('is accepted by RxJS, whichever name of the interface it looks for', () => {
    const one = new Observable<number>((subscriber) => subscriber.next(1))
    expect(isObservable(one)).toBe(true)
    expect((one as unknown as Record<string, () => unknown>)['@@observable']!()).toBe(one)
  })

  it('settles the promises of RxJS and its own', async () => {
    const two = new Observable<number>((subscriber) => {
      subscriber.next(1)
      subscriber.next(2)
      subscriber.complete()
    })
    const failed = new Observable<number>((subscriber) => subscriber.error(new Error('why')))
    const seen: number[] = []
    await two.forEach((value) => void seen.push(value))
    expect(seen).toEqual([1, 2])
    expect(await Promise.all([firstValueFrom(two), lastValueFrom(two), two.toPromise()])).toEqual([1, 2, 2])
    expect(await firstValueFrom(two.pipe(toArray()))).toEqual([1, 2])
    await expect(failed.forEach(() => {})).rejects.toThrow('why')
    await expect(failed.toPromise()).rejects.toThrow('why')
    await expect(firstValueFrom(failed)).rejects.toThrow('why')
  })

  it('is left by a `forEach` whose callback throws', async () => {
    const left = vi.fn()
    const endless = new Observable<number>((subscriber) => {
      subscriber.next(1)
      return left
    })
    const failing = endless.forEach(() => {
      throw new Error('of the callback')
    })
    await expect(failing).rejects.toThrow('of the callback')
    expect(left).toHaveBeenCalledOnce()
  })

  it('is subscribed to by callbacks, by an observer and by nothing', () => {
    const seen: unknown[] = []
    const one = new Observable<number>((subscriber) => {
      subscriber.next(1)
      subscriber.complete()
    })
    one.subscribe((value) => seen.push(value))
    one.subscribe(null, null, () => seen.push('complete'))
    one.subscribe({ next: (value) => seen.push(value) })
    one.subscribe()
    expect(seen).toEqual([1, 'complete', 1])
  })
})

describe('a subscription', () => {
  it('ends with a subscription of RxJS that it was added to', () => {
    const left = vi.fn()
    const parent = new Subscription()
    parent.add(new Observable<number>(() => left).subscribe())
    parent.unsubscribe()
    expect(left).toHaveBeenCalledOnce()
  })

  it('runs all teardowns, then throws what they threw', () => {
    const ran: number[] = []
    const subscription = new Observable<number>(() => {}).subscribe()
    for (const i of [1, 2, 3]) {
      subscription.add(() => {
        ran.push(i)
        if (i < 3) throw new Error(`of ${i}`)
      })
    }
    expect(() => subscription.unsubscribe()).toThrow(
      expect.objectContaining({ errors: [new Error('of 1'), new Error('of 2')] }),
    )
    expect(ran).toEqual([1, 2, 3])
    subscription.unsubscribe()
    expect(ran).toEqual([1, 2, 3])
  })

  it('runs a teardown at once that is added after the end, and none that was removed', () => {
    const [late, removed] = [vi.fn(), vi.fn()]
    const subscription = new Observable<number>(() => {}).subscribe()
    const other = new Subscription(removed)
    subscription.add(other)
    subscription.remove(other)
    subscription.unsubscribe()
    subscription.add(late)
    expect([late.mock.calls.length, removed.mock.calls.length]).toEqual([1, 0])
  })

  it('forgets the inner subscriptions of operators that have ended', () => {
    const added = vi.spyOn(Set.prototype, 'add')
    const source = new Subject<number>()
    const subscription = new Observable<number>((subscriber) => source.subscribe(subscriber))
      .pipe(mergeMap((value) => of(value)))
      .subscribe()
    for (let i = 0; i < 1_000; i++) source.next(i)
    const sizes = added.mock.contexts.map((set) => (set as Set<unknown>).size)
    added.mockRestore()
    expect(sizes.length).toBeGreaterThanOrEqual(1_000)
    expect(Math.max(...sizes)).toBeLessThan(40)
    subscription.unsubscribe()
  })
})
