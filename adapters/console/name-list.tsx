import type { ComponentChildren } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import type { CallOptions } from '../../src/api/call-options.ts'
import type { ListQuery, Page } from '../../src/model/info.ts'
import { useDebounced, useLoad } from './context.ts'
import { plural } from './format.ts'
import { type LoadNumbers, useListNumbers, type WithNumbers } from './numbers.tsx'
import { Button, LoadStatus } from './ui/elements.tsx'
import { type Column, Table } from './ui/table.tsx'

/** How many names a list loads at first, and on request: as many as one reply has. */
const NAMES_MIN = 50
const NAMES_MAX = 1000

/** A list of names: a search by prefix, more of them on request, sorted by any column, and actions. */
export function NameList<Item>(props: {
  readonly noun: string
  readonly load: (query: ListQuery, options?: CallOptions) => Promise<Page<Item>>
  readonly nameOf: (item: Item) => string
  readonly columns: readonly Column<Item & WithNumbers>[]
  /** Loads the numbers that columns show of a name, once it is in view. */
  readonly loadNumbers?: LoadNumbers | undefined
  /** Opens the first name with the prefix that was entered; the prefix itself if there is none. */
  readonly onOpen?: ((name: string) => void) | undefined
  /** Shown in place of an empty list without a search. */
  readonly empty: ComponentChildren
  readonly actions: ComponentChildren
  /** Loads again when it changes. */
  readonly version?: number | undefined
}) {
  const { noun, load, nameOf, columns, loadNumbers, onOpen, empty, actions, version } = props
  const [typed, setTyped] = useState('')
  const prefix = useDebounced(typed.trim(), 150)
  const [count, setCount] = useState(NAMES_MIN)
  useEffect(() => setCount(NAMES_MIN), [prefix])
  const loaded = useLoad((signal) => load({ prefix, limit: count }, { signal }), [prefix, count, version])
  const { data, error, isLoading, reload } = loaded
  const numbers = useListNumbers(loadNumbers)
  const [isSortedByNumber, setSortedByNumber] = useState(false)
  useEffect(() => {
    // Those out of view count, too.
    if (isSortedByNumber && data !== undefined) numbers.request(data.items.map(nameOf))
  }, [isSortedByNumber, data])
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
        <Button class="quiet" onClick={reload}>
          Reload
        </Button>
        <span class="spacer" />
        {actions}
      </div>
      <LoadStatus of={loaded} />
      {data !== undefined && data.items.length > 0 && (
        <Table
          label={`${noun[0]!.toUpperCase()}${noun.slice(1)}s`}
          columns={columns}
          rows={data.items.map((item) => ({ ...item, numbers: numbers.values.get(nameOf(item)) }))}
          keyOf={nameOf}
          onVisible={(item, isVisible) => numbers.show(nameOf(item), isVisible)}
          onSort={(column) => setSortedByNumber(column.class?.includes('number') === true)}
        />
      )}
      {data?.items.length === 0 &&
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
            <Button disabled={isLoading} onClick={() => setCount(NAMES_MAX)}>
              Load more
            </Button>
          )}
          <span>
            {plural(data.items.length, noun)} loaded, and there are more. Sorting concerns those that are
            loaded; find others by their prefix.
          </span>
        </p>
      )}
    </section>
  )
}
