import { useEffect, useState } from 'preact/hooks'
import { useConsole } from '../context.ts'

export interface Loaded<Result> {
  /** The result of the last load that succeeded with these dependencies or earlier ones. */
  readonly data: Result | undefined
  readonly error: Error | undefined
  readonly isLoading: boolean
  reload(): void
}

/**
 * Loads once, again when a dependency changes, and on `reload`. What failed is loaded again when a lost
 * connection is back.
 */
export function useLoad<Result>(
  load: (signal: AbortSignal) => Promise<Result>,
  dependencies: readonly unknown[],
): Loaded<Result> {
  const [state, setState] = useState<Omit<Loaded<Result>, 'reload'>>({
    data: undefined,
    error: undefined,
    isLoading: true,
  })
  const [count, setCount] = useState(0)
  useEffect(() => {
    const abort = new AbortController()
    setState(({ data }) => ({ data, error: undefined, isLoading: true }))
    load(abort.signal).then(
      (data) => abort.signal.aborted || setState({ data, error: undefined, isLoading: false }),
      (error) => abort.signal.aborted || setState(({ data }) => ({ data, error, isLoading: false })),
    )
    return () => abort.abort()
  }, [...dependencies, count])
  const reload = () => setCount((value) => value + 1)
  const { loss } = useConsole()
  useEffect(() => {
    // The connection is back.
    if (loss === undefined && state.error !== undefined) reload()
  }, [loss])
  return { ...state, reload }
}

/** A value that follows another one after a pause in its changes. */
export function useDebounced<Value>(value: Value, ms: number): Value {
  const [settled, setSettled] = useState(value)
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), ms)
    return () => clearTimeout(timer)
  }, [value, ms])
  return settled
}
