import { elementScroll, observeElementOffset, observeElementRect, Virtualizer } from '@tanstack/virtual-core'
import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useReducer, useRef, useState } from 'preact/hooks'

/** So many rows before an end, more of them are asked for. */
const NEAR_ROWS = 40

/** A list of many rows of one height, of which only the visible ones are elements. */
export function VirtualList(props: {
  readonly label: string
  readonly count: number
  /** The height in CSS pixels. */
  readonly rowHeight: number
  readonly renderRow: (index: number) => ComponentChildren
  /** A number that a row keeps when others come or go. */
  readonly keyOf: (index: number) => number
  readonly selected: number
  readonly onSelect: (index: number) => void
  readonly onEscape: () => void
  /** Whether the list stays at its end. */
  readonly isFollowing: boolean
  readonly onFollow: (isFollowing: boolean) => void
  /** Called after scrolling, with the first row in view. */
  readonly onTop: (index: number) => void
  /** Called when the first rows, or the last ones, come near. */
  readonly onNear: (end: 'first' | 'last') => void
}) {
  const { label, count, rowHeight, renderRow, keyOf, selected, onSelect, onEscape } = props
  const { isFollowing, onFollow, onTop, onNear } = props
  const viewport = useRef<HTMLDivElement>(null)
  const list = useVirtualizer(viewport, count, rowHeight, keyOf)
  const lastTop = useRef(0)
  // Keys may come faster than frames.
  const current = useRef(selected)
  current.current = selected

  const height = list.scrollRect?.height ?? 0
  const lastKey = count > 0 ? keyOf(count - 1) : undefined
  useLayoutEffect(() => {
    if (isFollowing) list.scrollToEnd()
  }, [isFollowing, lastKey, height])
  const selectedKey = selected === -1 ? undefined : keyOf(selected)
  useLayoutEffect(() => {
    // What is shown about the selected row may take the place where the row was.
    if (selectedKey !== undefined) list.scrollToIndex(selected)
  }, [selectedKey, height])

  const select = (index: number) => {
    if (index < 0) onNear('first')
    if (index >= count) onNear('last')
    current.current = Math.min(Math.max(index, 0), count - 1)
    onSelect(current.current)
  }
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'Escape') onEscape()
    const page = Math.max(1, Math.floor(height / rowHeight) - 1)
    // Nothing selected: the last visible row is where a reader looks.
    const isSelected = current.current !== -1
    const from = isSelected ? current.current : (list.range?.endIndex ?? 0)
    const target: Readonly<Record<string, number>> = {
      ArrowDown: from + 1,
      ArrowUp: isSelected ? from - 1 : from,
      PageDown: from + page,
      PageUp: from - page,
      Home: 0,
      End: count - 1,
    }
    const next = target[event.key]
    if (next === undefined) return
    event.preventDefault()
    select(isSelected ? next : Math.min(next, count - 1))
  }
  return (
    <div
      ref={viewport}
      class="rows"
      role="listbox"
      aria-label={label}
      aria-activedescendant={selected === -1 ? undefined : `row-${selected}`}
      tabIndex={0}
      onKeyDown={onKeyDown}
      onScroll={({ currentTarget: { scrollTop, scrollHeight, clientHeight } }) => {
        const first = Math.ceil(scrollTop / rowHeight)
        const below = scrollHeight - scrollTop - clientHeight
        // A change of the height also moves the end away; only scrolling up leaves it.
        if (below < rowHeight) onFollow(true)
        else if (scrollTop < lastTop.current) onFollow(false)
        if (scrollTop < lastTop.current && first < NEAR_ROWS) onNear('first')
        if (scrollTop > lastTop.current && below < NEAR_ROWS * rowHeight) onNear('last')
        lastTop.current = scrollTop
        onTop(first)
      }}
    >
      <div role="presentation" style={{ height: `${list.getTotalSize()}px` }}>
        <div
          role="presentation"
          style={{ transform: `translateY(${list.getVirtualItems()[0]?.start ?? 0}px)` }}
        >
          {list.getVirtualItems().map(({ index }) => (
            // biome-ignore lint/a11y/useKeyWithClickEvents: the keys are those of the list.
            <div
              key={index}
              id={`row-${index}`}
              class="row"
              role="option"
              aria-selected={index === selected}
              aria-setsize={count}
              aria-posinset={index + 1}
              tabIndex={-1}
              onClick={() => select(index)}
            >
              {renderRow(index)}
            </div>
          ))}
        </div>
      </div>
    </div>
  )
}

/** The virtualizer of a list, which keeps the row at the top where it is when rows come or go before it. */
function useVirtualizer(
  viewport: { readonly current: HTMLDivElement | null },
  count: number,
  rowHeight: number,
  keyOf: (index: number) => number,
): Virtualizer<HTMLDivElement, HTMLElement> {
  const [, render] = useReducer((renders: number) => renders + 1, 0)
  const options = {
    count,
    getScrollElement: () => viewport.current,
    estimateSize: () => rowHeight,
    getItemKey: keyOf,
    overscan: 8,
    anchorTo: 'end',
    scrollToFn: elementScroll,
    observeElementRect,
    observeElementOffset,
    onChange: () => render(undefined),
  } as const
  const [list] = useState(() => new Virtualizer<HTMLDivElement, HTMLElement>(options))
  list.setOptions(options)
  useLayoutEffect(() => list._didMount(), [])
  useLayoutEffect(() => list._willUpdate())
  return list
}
