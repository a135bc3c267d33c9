import { Observable } from 'rxjs'
import { isPromise, LATER, type MaybePromise } from '../runtime/maybe-promise.ts'
import type { CursorIterator } from './record-cursor.ts'

/**
 * A cold observable of what an iterator yields: each subscription iterates from the beginning. Items that are
 * available are emitted in one turn. `emit` passes an item on and stops when `next` returns true, which means
 * that the subscriber has left.
 */
export function observe<Item, Value>(
  iterate: () => CursorIterator<Item>,
  emit: (item: Item, next: (value: Value) => boolean) => void,
): Observable<Value> {
  return new Observable((subscriber) => {
    const iterator = iterate()
    const next = (value: Value) => {
      subscriber.next(value)
      return subscriber.closed
    }
    const fail = (error: unknown) => subscriber.error(error)
    const run = (arrived: MaybePromise<IteratorResult<Item, void>>) => {
      try {
        let result: typeof arrived | typeof LATER = arrived
        while (result !== LATER) {
          if (isPromise(result)) {
            result.then(run, fail)
            return
          }
          if (result.done) {
            subscriber.complete()
            return
          }
          emit(result.value, next)
          if (subscriber.closed) return
          result = iterator.take(run)
        }
      } catch (error) {
        fail(error)
      }
    }
    run(iterator.take())
    return () => void iterator.return()
  })
}
