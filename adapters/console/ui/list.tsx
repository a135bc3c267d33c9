import type { ComponentChildren } from 'preact'
import { useEffect, useReducer, useRef, useState } from 'preact/hooks'
import type { CallOptions } from '../../../src/api/call-options.ts'
import type { ListQuery, Page } from '../../../src/model/info.ts'
import { plural } from '../format.ts'
import { useDebounced, useLoad } from './async.ts'
import { Loading, Problem } from './elements.tsx'

/** How many names a list loads at first, how many times as many on request, and at the most. */
const NAMES_MIN = 50
const NAMES_FACTOR = 4
const NAMES_MAX = 3200
/** How many names one reply has at the most. */
const REPLY_NAMES_MAX = 1000

/** A value that names are sorted by; undefined if it is not known. */
type Key = number | string | undefined

export interface Column<Item, Value = undefined> {
  readonly title: string
  /** Left out on narrow screens. */
  readonly isSecondary?: boolean | undefined
  readonly isNumber?: boolean | undefined
  readonly cell: (item: Item, value: Value | undefined) => ComponentChildren
  readonly sortBy?: ((item: Item, value: Value | undefined) => Key) | undefined
}

/** A list of names: a search by prefix, more of them on request, sorted by any column, and actions. */
export function NameList<Item, Value = undefined>(props: {
  readonly noun: string
  readonly load: (query: ListQuery, options?: CallOptions) => Promise<Page<Item>>
  readonly nameOf: (item: Item) => string
  readonly columns: readonly Column<Item, Value>[]
  /** Loads what columns show of a name beside the item, once it is in view. */
  readonly loadValue?:
    | ((name: string, before: Value | undefined, signal: AbortSignal) => Promise<Value>)
    | undefined
  /** Called for the first name with the prefix that was entered; for the prefix itself if there is none. */
  readonly onOpen?: ((name: string) => void) | undefined
  /** Shown in place of an empty list without a search. */
  readonly empty: ComponentChildren
  readonly actions: ComponentChildren
  /** Loads again when it changes. */
  readonly version: number
}) {
  const { noun, load, nameOf, columns, loadValue, onOpen, empty, actions, version } = props
  const [typed, setTyped] = useState('')
  const prefix = useDebounced(typed.trim(), 150)
  const [count, setCount] = useState(NAMES_MIN)
  useEffect(() => setCount(NAMES_MIN), [prefix])
  const { data, error, isLoading, reload } = useLoad(
    async (signal) => {
      const items: Item[] = []
      for (;;) {
        const startAfter = items.length > 0 ? nameOf(items.at(-1)!) : ''
        const limit = Math.min(count - items.length, REPLY_NAMES_MAX)
        const page = await load({ prefix, startAfter, limit }, { signal })
        items.push(...page.items)
        if (!page.hasMore || items.length >= count) return { items, hasMore: page.hasMore }
      }
    },
    [prefix, count, version],
  )
  const isEmpty = data !== undefined && data.items.length === 0
  const openTyped = async () => {
    const name = typed.trim()
    if (name === '' || onOpen === undefined) return
    // The list may be that of an earlier prefix. A token that may not list can still open a name.
    const found = await load({ prefix: name, limit: 1 }).catch(() => undefined)
    const first = found?.items[0]
    onOpen(first === undefined ? name : nameOf(first))
  }
  return (
    <section class="list" aria-busy={isLoading}>
      <div class="toolbar">
        <form
          class="inline"
          onSubmit={(event) => {
            event.preventDefault()
            openTyped()
          }}
        >
          <input
            type="search"
            aria-label={`Search ${noun}s by prefix`}
            placeholder="Find by prefix"
            aria-keyshortcuts="/"
            spellcheck={false}
            value={typed}
            onInput={(event) => setTyped(event.currentTarget.value)}
          />
        </form>
        <button type="button" class="quiet" onClick={reload}>
          Reload
        </button>
        <span class="spacer" />
        {actions}
      </div>
      <Problem error={error} />
      {data === undefined && isLoading && <Loading />}
      {data !== undefined && !isEmpty && (
        <Table noun={noun} items={data.items} nameOf={nameOf} columns={columns} loadValue={loadValue} />
      )}
      {isEmpty &&
        error === undefined &&
        (prefix === '' ? (
          empty
        ) : (
          <p class="empty">
            No {noun} begins with “{prefix}”.
          </p>
        ))}
      {data?.hasMore && (
        <p class="pager">
          {count < NAMES_MAX && (
            <button type="button" disabled={isLoading} onClick={() => setCount(count * NAMES_FACTOR)}>
              Load more
            </button>
          )}
          <span>
            {plural(data.items.length, noun)} loaded, and there are more. Sorting concerns those that are
            loaded.
          </span>
        </p>
      )}
    </section>
  )
}

function Table<Item, Value>(props: {
  readonly noun: string
  readonly items: readonly Item[]
  readonly nameOf: (item: Item) => string
  readonly columns: readonly Column<Item, Value>[]
  readonly loadValue:
    | ((name: string, before: Value | undefined, signal: AbortSignal) => Promise<Value>)
    | undefined
}) {
  const { noun, items, nameOf, columns, loadValue } = props
  const { values, request, show } = useNumbers(loadValue)
  const [sorting, setSorting] = useState<{ readonly title: string; readonly isDescending: boolean }>()
  const className = ({ isSecondary, isNumber }: Column<Item, Value>) =>
    `${isSecondary ? 'secondary' : ''} ${isNumber ? 'number' : ''}`
  const { sortBy, isNumber } = columns.find(({ title }) => title === sorting?.title) ?? {}
  useEffect(() => {
    // Those out of view count, too.
    if (isNumber) request(items.map(nameOf).filter((name) => !values.has(name)))
  }, [isNumber, items])
  const keyOf = (item: Item) => sortBy!(item, values.get(nameOf(item)))
  const isDescending = sorting?.isDescending ?? false
  const rows =
    sortBy === undefined ? items : items.toSorted((a, b) => compared(keyOf(a), keyOf(b), isDescending))
  return (
    <table aria-label={`${noun[0]!.toUpperCase()}${noun.slice(1)}s`}>
      <thead>
        <tr>
          {columns.map((column) => {
            const { title } = column
            const isSorted = sorting?.title === title
            return (
              <th
                key={title}
                scope="col"
                class={className(column)}
                aria-sort={isSorted ? (sorting.isDescending ? 'descending' : 'ascending') : undefined}
              >
                {column.sortBy === undefined ? (
                  title
                ) : (
                  <button
                    type="button"
                    class="sort"
                    title={`Sort by ${title.toLowerCase()}`}
                    onClick={() =>
                      setSorting({ title, isDescending: isSorted ? !sorting.isDescending : title !== 'Name' })
                    }
                  >
                    {title}
                    {isSorted && (sorting.isDescending ? ' ↓' : ' ↑')}
                  </button>
                )}
              </th>
            )
          })}
        </tr>
      </thead>
      <tbody>
        {rows.map((item) => (
          <Row key={nameOf(item)} onVisible={(isVisible) => show(nameOf(item), isVisible)}>
            {columns.map((column) => (
              <td key={column.title} class={className(column)}>
                {column.cell(item, values.get(nameOf(item)))}
              </td>
            ))}
          </Row>
        ))}
      </tbody>
    </table>
  )
}

function Row(props: {
  readonly onVisible: (isVisible: boolean) => void
  readonly children: ComponentChildren
}) {
  const row = useRef<HTMLTableRowElement>(null)
  useEffect(() => {
    const observer = new IntersectionObserver((entries) => props.onVisible(entries.at(-1)!.isIntersecting))
    observer.observe(row.current!)
    return () => {
      observer.disconnect()
      props.onVisible(false)
    }
  }, [])
  return <tr ref={row}>{props.children}</tr>
}

/** The order of two keys. What is not known comes last in either direction. */
function compared(a: Key, b: Key, isDescending: boolean): number {
  if (a === undefined || b === undefined) return Number(a === undefined) - Number(b === undefined)
  if (a === b) return 0
  return a < b === isDescending ? 1 : -1
}

/** Requests for numbers that run at once: the page has others. */
const CONCURRENT_MAX = 4
const INTERVAL_MS = 5000

/**
 * Values of the names that are in view, loaded lazily, a few at a time, and again every five seconds while
 * the page is visible.
 */
export function useNumbers<Value>(
  load: ((name: string, before: Value | undefined, signal: AbortSignal) => Promise<Value>) | undefined,
  /** Names that are always in view. */
  shown: readonly string[] = [],
) {
  const [, render] = useReducer((count: number) => count + 1, 0)
  const state = useRef({
    values: new Map<string, Value>(),
    visible: new Set<string>(),
    queue: new Set<string>(),
    running: 0,
    abort: new AbortController(),
  }).current
  const run = () => {
    for (const name of state.queue) {
      if (state.running >= CONCURRENT_MAX) return
      state.queue.delete(name)
      if (!load) continue
      const { signal } = state.abort
      state.running++
      load(name, state.values.get(name), signal)
        .then(
          (value) => state.values.set(name, value),
          () => {},
        )
        .finally(() => {
          state.running--
          if (signal.aborted) return
          run()
          render(undefined)
        })
    }
  }
  const request = (names: Iterable<string>) => {
    for (const name of names) state.queue.add(name)
    run()
  }
  useEffect(() => {
    state.abort = new AbortController()
    const timer = setInterval(() => {
      if (document.visibilityState === 'visible' && state.queue.size === 0) request(state.visible)
    }, INTERVAL_MS)
    for (const name of shown) state.visible.add(name)
    request(shown)
    return () => {
      clearInterval(timer)
      state.abort.abort()
      state.queue.clear()
    }
  }, [])
  return {
    values: state.values as ReadonlyMap<string, Value>,
    /** Loads the values of these names, too. */
    request,
    /** Tells whether a name is in view. */
    show(name: string, isVisible: boolean) {
      if (!isVisible) state.visible.delete(name)
      else {
        state.visible.add(name)
        if (!state.values.has(name)) request([name])
      }
    },
  }
}
