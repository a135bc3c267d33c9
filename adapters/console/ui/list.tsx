import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { CallOptions } from '../../../src/api/call-options.ts'
import type { ListQuery, Page } from '../../../src/model/info.ts'
import { useDebounced, useLoad } from './async.ts'
import { Loading, Problem } from './notice.tsx'
import { useNumbers } from './use-numbers.ts'

/** How many names a page of a list shows. */
const PAGE_SIZE = 50

export interface Column<Item, Value = undefined> {
  readonly title: string
  /** Left out on narrow screens. */
  readonly isSecondary?: boolean | undefined
  readonly isNumber?: boolean | undefined
  readonly cell: (item: Item, value: Value | undefined) => ComponentChildren
  /** By what the page is sorted; undefined if the value is not known. */
  readonly sortBy?: ((item: Item, value: Value | undefined) => number | string | undefined) | undefined
}

/** A list in the order of names: a search by prefix, pages, and actions. */
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
  // The names after which the pages up to this one begin.
  const [starts, setStarts] = useState<readonly string[]>([''])
  useEffect(() => setStarts(['']), [prefix])
  const start = starts.at(-1)!
  const { data, error, isLoading, reload } = useLoad(
    async (signal) => ({
      start,
      ...(await load({ prefix, startAfter: start, limit: PAGE_SIZE }, { signal })),
    }),
    [prefix, start, version],
  )
  const isEmpty = data !== undefined && data.items.length === 0
  const isUnfiltered = prefix === '' && starts.length === 1
  const section = useRef<HTMLElement>(null)
  useEffect(() => {
    section.current!.closest('.content')!.scrollTop = 0
  }, [start])
  const openTyped = async () => {
    const name = typed.trim()
    if (name === '' || onOpen === undefined) return
    // The list may be that of an earlier prefix. A token that may not list can still open a name.
    const found = await load({ prefix: name, limit: 1 }).catch(() => undefined)
    const first = found?.items[0]
    onOpen(first === undefined ? name : nameOf(first))
  }
  return (
    <section ref={section} class="list" aria-busy={isLoading}>
      <form
        class="toolbar"
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
        <button type="button" class="quiet" onClick={reload}>
          Reload
        </button>
        <span class="spacer" />
        {actions}
      </form>
      <Problem error={error} />
      {data === undefined && isLoading && <Loading />}
      {data !== undefined && !isEmpty && (
        <Table noun={noun} items={data.items} nameOf={nameOf} columns={columns} loadValue={loadValue} />
      )}
      {isEmpty &&
        error === undefined &&
        (isUnfiltered ? (
          empty
        ) : (
          <p class="empty">
            No {noun} begins with “{prefix}”.
          </p>
        ))}
      {data !== undefined && (data.hasMore || starts.length > 1) && (
        <nav class="pager" aria-label={`Pages of ${noun}s`}>
          <button type="button" disabled={starts.length === 1} onClick={() => setStarts(starts.slice(0, -1))}>
            Previous
          </button>
          <span>Page {starts.length}</span>
          <button
            type="button"
            // The next page begins after the last name of this one, which may still be loading.
            disabled={!data.hasMore || data.start !== start}
            onClick={() => {
              const next = nameOf(data.items.at(-1)!)
              // A second click before the page is rendered is still about this one.
              setStarts((current) => (current.at(-1) === data.start ? [...current, next] : current))
            }}
          >
            Next
          </button>
        </nav>
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
  const sortBy = columns.find(({ title }) => title === sorting?.title)?.sortBy
  const keyOf = (item: Item) => sortBy!(item, values.get(nameOf(item)))
  const sorted = sortBy === undefined ? items : items.toSorted((a, b) => compared(keyOf(a), keyOf(b)))
  // What is not known comes last in either direction.
  const rows = sorting?.isDescending
    ? [
        ...sorted.filter((item) => keyOf(item) !== undefined).reverse(),
        ...sorted.filter((item) => keyOf(item) === undefined),
      ]
    : sorted
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
                    title={`Sort this page by ${title.toLowerCase()}`}
                    onClick={() => {
                      request(items.map(nameOf).filter((name) => !values.has(name)))
                      setSorting({ title, isDescending: isSorted ? !sorting.isDescending : title !== 'Name' })
                    }}
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

function compared(a: number | string | undefined, b: number | string | undefined): number {
  if (a === b) return 0
  if (a === undefined || b === undefined) return a === undefined ? 1 : -1
  return a < b ? -1 : 1
}
