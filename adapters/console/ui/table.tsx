import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'

/** A value that rows are sorted by; undefined if it is not known. */
type Key = number | string | undefined

export interface Column<Row> {
  readonly title: string
  /** `secondary` columns are left out on narrow screens. */
  readonly class?: 'number' | 'secondary' | 'number secondary' | undefined
  readonly cell: (row: Row) => ComponentChildren
  readonly sortBy?: ((row: Row) => Key) | undefined
}

/** A table, sorted by a column whose title is clicked. */
export function Table<Row>(props: {
  readonly label: string
  readonly columns: readonly Column<Row>[]
  readonly rows: readonly Row[]
  readonly keyOf?: ((row: Row) => string) | undefined
  /** Receives a row that comes into view, with true, and one that leaves it, with false. */
  readonly onVisible?: ((row: Row, isVisible: boolean) => void) | undefined
  readonly onSort?: ((column: Column<Row>) => void) | undefined
}) {
  const { label, columns, rows, keyOf, onVisible, onSort } = props
  const [sorting, setSorting] = useState<{ readonly title: string; readonly isDescending: boolean }>()
  const { sortBy } = columns.find(({ title }) => title === sorting?.title) ?? {}
  const isDescending = sorting?.isDescending ?? false
  const sorted = sortBy ? rows.toSorted((a, b) => compared(sortBy(a), sortBy(b), isDescending)) : rows
  const sort = (column: Column<Row>) => {
    const { title } = column
    setSorting({ title, isDescending: title === sorting?.title ? !isDescending : title !== 'Name' })
    onSort?.(column)
  }
  return (
    <table aria-label={label}>
      <thead>
        <tr>
          {columns.map((column) => {
            const { title } = column
            const order = title === sorting?.title ? (isDescending ? 'descending' : 'ascending') : undefined
            return (
              <th key={title} scope="col" class={column.class} aria-sort={order}>
                {column.sortBy === undefined ? (
                  title
                ) : (
                  <button
                    type="button"
                    class="sort"
                    title={`Sort by ${title.toLowerCase()}`}
                    onClick={() => sort(column)}
                  >
                    {title}
                    {order && (isDescending ? ' ↓' : ' ↑')}
                  </button>
                )}
              </th>
            )
          })}
        </tr>
      </thead>
      <tbody>
        {sorted.map((row, index) => (
          <TableRow key={keyOf?.(row) ?? index} row={row} onVisible={onVisible}>
            {columns.map((column) => (
              <td key={column.title} class={column.class}>
                {column.cell(row)}
              </td>
            ))}
          </TableRow>
        ))}
      </tbody>
    </table>
  )
}

function TableRow<Row>(props: {
  readonly row: Row
  readonly onVisible?: ((row: Row, isVisible: boolean) => void) | undefined
  readonly children: ComponentChildren
}) {
  const { row, onVisible, children } = props
  const element = useRef<HTMLTableRowElement>(null)
  useEffect(() => {
    if (onVisible === undefined) return
    const observer = new IntersectionObserver((entries) => onVisible(row, entries.at(-1)!.isIntersecting))
    observer.observe(element.current!)
    return () => {
      observer.disconnect()
      onVisible(row, false)
    }
  }, [])
  return <tr ref={element}>{children}</tr>
}

/** The order of two keys. What is not known comes last in either direction. */
function compared(a: Key, b: Key, isDescending: boolean): number {
  if (a === undefined || b === undefined) return Number(a === undefined) - Number(b === undefined)
  if (a === b) return 0
  return a < b === isDescending ? 1 : -1
}
