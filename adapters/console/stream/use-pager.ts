import { useEffect, useMemo, useReducer, useRef, useState } from 'preact/hooks'
import type { SequencedRecord } from '../../../src/model/record.ts'
import { useConsole } from '../context.ts'
import type { CurlTarget } from '../snippets.ts'
import { Pager } from './pager.ts'
import { matcherOf, parseQuery } from './query.ts'
import type { RecordWindow } from './record-window.ts'
import { type SearchOrder, StreamSearch } from './search.ts'
import type { Start } from './tail.ts'

/** How long the filter works before it gives way to the page. */
const SCAN_MS = 8

export interface PagedRecords {
  readonly pager: Pager
  /** The search through the whole stream, whose records are shown instead of the pages. */
  readonly search: StreamSearch | undefined
  /** The records to show. */
  readonly window: RecordWindow
  /** Whether the filter has seen every record. */
  readonly isFiltered: boolean
  /** The problem with the filter. */
  readonly problem: string | undefined
  /** Appended records per second. */
  readonly rate: number
  /** Searches the whole stream, or continues where an earlier search ended. */
  searchAll(order: SearchOrder, from?: number): void
  endSearch(): void
}

/** The part of a stream that is shown, opened at `start`, and filtered by a query. */
export function usePager(target: CurlTarget, start: Start, filter: string): PagedRecords {
  const { connection } = useConsole()
  const { basin, stream, encryptionKey } = target
  const frames = useFrames()
  const pager = useMemo(
    () => new Pager(connection, { basin, stream, encryptionKey }, frames.render),
    [connection, basin, stream, encryptionKey],
  )
  const [search, setSearch] = useState<StreamSearch>()
  const { selects, problem } = useMemo(() => compiled(filter), [filter])
  const window = search?.found ?? pager.window
  frames.window.current = window

  useEffect(() => {
    pager.open(start)
    return () => pager.close()
  }, [pager])
  useEffect(() => {
    if (problem !== undefined) return
    pager.window.filter(selects)
    setSearch(undefined)
    frames.render()
  }, [pager, selects, problem])
  useEffect(() => () => search?.cancel(), [search])
  const searchAll = (order: SearchOrder, from?: number) => {
    if (selects === undefined) return
    const searched = { basin, stream, encryptionKey }
    setSearch(new StreamSearch(connection, searched, order, from, selects, frames.render))
  }
  const endSearch = () => {
    setSearch(undefined)
    frames.render()
  }
  const { isFiltered } = frames
  return { pager, search, window, isFiltered, problem, rate: useRate(pager), searchAll, endSearch }
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

function useRate(pager: Pager): number {
  const [rate, setRate] = useState(0)
  useEffect(() => {
    let before = pager.appended
    const timer = setInterval(() => {
      setRate(Math.max(0, pager.appended - before))
      before = pager.appended
    }, 1000)
    return () => clearInterval(timer)
  }, [pager])
  return rate
}

/** Renders at most once per frame, however often it is called, and until the filter has seen every record. */
function useFrames() {
  const [, update] = useReducer((count: number) => count + 1, 0)
  const frame = useRef(0)
  const window = useRef<RecordWindow>(undefined)
  const isFiltered = useRef(true)
  useEffect(() => () => cancelAnimationFrame(frame.current), [])
  const render = useMemo(() => {
    const request = () => {
      if (frame.current !== 0) return
      frame.current = requestAnimationFrame(() => {
        frame.current = 0
        const end = performance.now() + SCAN_MS
        isFiltered.current = window.current!.scan(() => performance.now() > end)
        if (!isFiltered.current) request()
        update(undefined)
      })
    }
    return request
  }, [])
  return { isFiltered: isFiltered.current, window, render }
}
