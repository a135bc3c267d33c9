/** A value, or the promise of one. Hot paths return the value itself if they can. */
export type MaybePromise<Value> = Value | Promise<Value>

/** Calls `next` with the value: synchronously if it is not a promise, otherwise once it resolves. */
export function andThen<Value, Result>(
  value: MaybePromise<Value>,
  next: (value: Value) => MaybePromise<Result>,
): MaybePromise<Result> {
  return isPromise(value) ? value.then(next) : next(value)
}

/** Whether the value is a promise, of any realm. */
export function isPromise<Value>(value: MaybePromise<Value>): value is Promise<Value> {
  return typeof (value as Partial<Promise<Value>> | undefined)?.then === 'function'
}
