import { useCallback, useEffect, useMemo, useReducer, useRef, useState } from 'preact/hooks'
import type { Stream } from '../../../src/api/stream.ts'
import type { SequencedRecord } from '../../../src/model/record.ts'
import { Pager, RecordWindow, type Start, yieldToPage } from './pager.ts'
import { matcherOf, parseQuery } from './query.ts'

/** A search pauses when it has found so many records or more; it can be continued. */
const FOUND_MAX = 1000
/** A search reads so many records, or fewer large ones, then those before them. */
const PAGE_RECORDS = 1000

/** A search through a whole stream, from the newest record back to the first one. */
export class StreamSearch {
  /** The records that were found. */
  readonly found = new RecordWindow()
  state: 'running' | 'done' | 'limited' | 'cancelled' | 'failed' = 'running'
  error: Error | undefined
  /** How many records were looked at, and how many there are. */
  scanned = 0
  total = 0
  /** The end of what was not looked at, where a search continues. */
  next: number | undefined
  readonly #abort = new AbortController()
  readonly #selects: (record: SequencedRecord) => boolean
  readonly #onChange: () => void

  /** @param end Where an earlier search ended; undefined is the tail. */
  constructor(
    stream: Stream,
    end: number | undefined,
    selects: (record: SequencedRecord) => boolean,
    onChange: () => void,
  ) {
    this.next = end
    this.#selects = selects
    this.#onChange = onChange
    this.#run(stream).then(
      (state) => this.#end(state),
      (error) => {
        this.error = error
        this.#end('failed')
      },
    )
  }

  cancel(): void {
    this.#end('cancelled')
    this.#abort.abort()
  }

  async #run(stream: Stream): Promise<StreamSearch['state']> {
    const { signal } = this.#abort
    const tail = (await stream.checkTail({ signal })).seqNum
    const { records } = await stream.readBatch({ seqNum: 0, count: 1, clamp: true }, { as: 'bytes', signal })
    const first = records[0]?.seqNum ?? tail
    const end = this.next ?? tail
    this.total = Math.max(0, end - first)
    let workSince = performance.now()
    let pageRecords = PAGE_RECORDS
    let pageEnd = end
    while (pageEnd > first) {
      const pageStart = Math.max(first, pageEnd - pageRecords)
      const selected: SequencedRecord[] = []
      let fits = true
      const query = { seqNum: pageStart, count: pageEnd - pageStart, clamp: true }
      for await (const batch of stream.read(query, { as: 'bytes', signal }).batches()) {
        selected.push(...batch.records.filter((one) => one.seqNum < pageEnd && this.#selects(one)))
        fits = this.found.hasRoomFor(selected)
        if (!fits) break
        workSince = await yieldToPage(workSince)
      }
      if (!fits && this.found.held > 0) return 'limited'
      if (!fits) {
        pageRecords = Math.ceil(pageRecords / 4)
        continue
      }
      this.found.prepend(selected)
      pageEnd = pageStart
      this.next = pageStart
      this.scanned = end - pageStart
      this.#onChange()
      if (this.found.held >= FOUND_MAX && pageStart > first) return 'limited'
    }
    return 'done'
  }

  #end(state: StreamSearch['state']): void {
    if (this.state !== 'running') return
    this.state = state
    this.#onChange()
  }
}

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
export function usePagedRecords(stream: Stream, start: Start, filter: string): PagedRecords {
  const render = useFrameRender()
  const pager = useMemo(() => new Pager(stream, render), [stream])
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
    if (selects !== undefined) setSearch(new StreamSearch(stream, end, selects, render))
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
