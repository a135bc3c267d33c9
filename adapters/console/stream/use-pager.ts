import { useCallback, useEffect, useMemo, useReducer, useRef, useState } from 'preact/hooks'
import type { SequencedRecord } from '../../../src/model/record.ts'
import type { StreamTarget } from '../connection.ts'
import { Pager, type RecordWindow, type Start } from './pager.ts'
import { matcherOf, parseQuery } from './query.ts'
import { StreamSearch } from './search.ts'

export interface PagedRecords {
  readonly pager: Pager
  /** The search through the whole stream, whose records are shown instead of the pages. */
  readonly search: StreamSearch | undefined
  /** The records to show. */
  readonly window: RecordWindow
  /** The problem with the filter. */
  readonly problem: string | undefined
  /** Searches the whole stream, or continues where an earlier search ended. */
  searchAll(end?: number): void
  endSearch(): void
}

/** The part of a stream that is shown, opened at `start`, and filtered by a query. */
export function usePager({ handle }: StreamTarget, start: Start, filter: string): PagedRecords {
  const render = useFrameRender()
  const pager = useMemo(() => new Pager(handle, render), [handle])
  const [search, setSearch] = useState<StreamSearch>()
  const { selects, problem } = useMemo(() => compiled(filter), [filter])

  useEffect(() => {
    pager.open(start)
    return () => pager.close()
  }, [pager])
  useEffect(() => {
    if (problem !== undefined) return
    pager.window.filter(selects)
    setSearch(undefined)
    render()
  }, [pager, selects, problem])
  useEffect(() => () => search?.cancel(), [search])
  const searchAll = (end?: number) => {
    if (selects !== undefined) setSearch(new StreamSearch(handle, end, selects, render))
  }
  const window = search?.found ?? pager.window
  const endSearch = () => setSearch(undefined)
  return { pager, search, window, problem, searchAll, endSearch }
}

function compiled(filter: string): {
  readonly selects?: ((record: SequencedRecord) => boolean) | undefined
  readonly problem?: string | undefined
} {
  try {
    return filter.trim() === '' ? {} : { selects: matcherOf(parseQuery(filter)) }
  } catch (error) {
    return { problem: (error as Error).message }
  }
}

/** Returns a function that renders at the next frame, once however often it is called. */
function useFrameRender(): () => void {
  const [, update] = useReducer((count: number) => count + 1, 0)
  const frame = useRef(0)
  useEffect(() => () => cancelAnimationFrame(frame.current), [])
  return useCallback(() => {
    frame.current ||= requestAnimationFrame(() => {
      frame.current = 0
      update(undefined)
    })
  }, [])
}
