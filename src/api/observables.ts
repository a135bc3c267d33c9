import { Observable } from 'rxjs'
import { isPromise, type MaybePromise } from '../runtime/maybe-promise.ts'
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
    /** Emits an item and those available after it. Returns what to wait for; undefined at the end. */
    const emitFrom = (first: IteratorResult<Item, void>) => {
      let taken: MaybePromise<IteratorResult<Item, void>> = first
      while (!isPromise(taken)) {
        if (taken.done) {
          subscriber.complete()
          return undefined
        }
        emit(taken.value, next)
        if (subscriber.closed) return undefined
        taken = iterator.take()
      }
      return taken
    }
    const run = async () => {
      let taken: MaybePromise<IteratorResult<Item, void>> | undefined = iterator.take()
      while (taken !== undefined) taken = emitFrom(await taken)
    }
    run().catch((error: unknown) => subscriber.error(error))
    return () => void iterator.return()
  })
}
