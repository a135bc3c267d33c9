import { createContext } from 'preact'
import { useContext, useEffect, useState } from 'preact/hooks'
import type { Connection } from './connection.ts'
import type { ConsoleRoute } from './route.ts'
import type { ProtobufTypes } from './stream/body.ts'

/** The state and services that every part of the console uses. */
export interface Console {
  readonly connection: Connection
  /** Set while the server cannot be reached, which the page shows above every view. */
  readonly loss: Error | undefined
  /** Whether the server has an address, which curl commands can use. */
  readonly hasAddress: boolean
  navigate(route: ConsoleRoute): void
  /** Changes the address of the current view, without a new entry in the history. */
  replaceRoute(route: ConsoleRoute): void
  /** Shows a message for some seconds. */
  announce(message: string): void
  /** The types of protobuf messages that were loaded. */
  readonly protobufTypes: ProtobufTypes | undefined
  setProtobufTypes(types: ProtobufTypes): void
}

export const ConsoleContext = createContext<Console | undefined>(undefined)

export function useConsole(): Console {
  const value = useContext(ConsoleContext)
  if (value === undefined) throw new Error('not inside a console')
  return value
}

interface LoadState<Result> {
  /** The result of the last load that succeeded with these dependencies or earlier ones. */
  readonly data: Result | undefined
  /** The error of the last load if it failed. */
  readonly error: Error | undefined
  readonly isLoading: boolean
}

export interface Loaded<Result> extends LoadState<Result> {
  reload(): void
}

/**
 * Loads once, again when a dependency changes, and on `reload`; with `everyMs`, also so long after each load
 * while the page is visible. `load` gets the result before. What failed is loaded again when a lost
 * connection is back.
 */
export function useLoad<Result>(
  load: (signal: AbortSignal, before: Result | undefined) => Promise<Result>,
  dependencies: readonly unknown[],
  everyMs?: number,
): Loaded<Result> {
  const [state, setState] = useState<LoadState<Result>>({
    data: undefined,
    error: undefined,
    isLoading: true,
  })
  const [count, setCount] = useState(0)
  const reload = () => setCount((value) => value + 1)
  useEffect(() => {
    const abort = new AbortController()
    let timer: ReturnType<typeof setTimeout> | undefined
    const loadLater = () => {
      if (everyMs !== undefined) timer = setTimeout(() => (document.hidden ? loadLater() : reload()), everyMs)
    }
    const settle = (change: Partial<LoadState<Result>>) => {
      if (abort.signal.aborted) return
      setState((before) => ({ ...before, ...change, isLoading: false }))
      loadLater()
    }
    setState((before) => ({ ...before, isLoading: true }))
    load(abort.signal, state.data).then(
      (data) => settle({ data, error: undefined }),
      (error) => settle({ error }),
    )
    return () => {
      abort.abort()
      clearTimeout(timer)
    }
  }, [...dependencies, count])
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
