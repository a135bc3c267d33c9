import type { ComponentChildren } from 'preact'
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'

/** Rows rendered beyond each edge, so that scrolling shows no gap. */
const OVERSCAN = 8
/** So many rows before an end, more of them are asked for. */
const NEAR_ROWS = 40

/** A list of many rows of one height, of which only the visible ones are elements. */
export function VirtualList(props: {
  readonly label: string
  readonly count: number
  /** The height in CSS pixels. */
  readonly rowHeight: number
  readonly renderRow: (index: number) => ComponentChildren
  /** Numbers that rows keep when others come or go, in ascending order. */
  readonly keyOf: (index: number) => number
  /** The row of a key, or of the next larger one. */
  readonly rowOf: (key: number) => number
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
  const { label, count, rowHeight, renderRow, keyOf, rowOf, selected, onSelect, onEscape } = props
  const { isFollowing, onFollow, onTop, onNear } = props
  const viewport = useRef<HTMLDivElement>(null)
  const [top, setTop] = useState(0)
  const [height, setHeight] = useState(0)
  const lastTop = useRef(0)
  // Keys may come faster than frames.
  const current = useRef(selected)
  current.current = selected
  /** The row at the top, which stays where it is when rows are added or removed before it. */
  const anchor = useRef<{ readonly key: number; readonly offset: number }>(undefined)

  const keepAnchor = (scrollTop: number) => {
    const index = Math.min(Math.floor(scrollTop / rowHeight), count - 1)
    anchor.current = index < 0 ? undefined : { key: keyOf(index), offset: scrollTop - index * rowHeight }
  }
  useEffect(() => {
    const element = viewport.current!
    const resized = new ResizeObserver(() => setHeight(element.clientHeight))
    resized.observe(element)
    return () => resized.disconnect()
  }, [])
  const firstKey = count > 0 ? keyOf(0) : 0
  useLayoutEffect(() => {
    const element = viewport.current!
    if (isFollowing) element.scrollTop = element.scrollHeight
    else if (anchor.current !== undefined) {
      element.scrollTop = rowOf(anchor.current.key) * rowHeight + anchor.current.offset
    }
    lastTop.current = element.scrollTop
    setTop(element.scrollTop)
    keepAnchor(element.scrollTop)
  }, [count, firstKey, isFollowing, height, rowHeight])

  const first = Math.max(0, Math.floor(top / rowHeight) - OVERSCAN)
  const last = Math.min(count, Math.ceil((top + height) / rowHeight) + OVERSCAN)
  const rows = Array.from({ length: Math.max(0, last - first) }, (_, index) => first + index)

  const reveal = (index: number) => {
    const element = viewport.current!
    const rowTop = index * rowHeight
    if (rowTop < element.scrollTop) element.scrollTop = rowTop
    const { clientHeight } = element
    if (rowTop + rowHeight > element.scrollTop + clientHeight)
      element.scrollTop = rowTop + rowHeight - clientHeight
  }
  const select = (index: number) => {
    if (index < 0) onNear('first')
    if (index >= count) onNear('last')
    const next = Math.min(Math.max(index, 0), count - 1)
    if (next < 0) return
    current.current = next
    onSelect(next)
    reveal(next)
  }
  // What is shown about the selected row may take the place where the row was.
  const heightBefore = useRef(0)
  useLayoutEffect(() => {
    const rowTop = selected * rowHeight - viewport.current!.scrollTop
    const wasVisible = rowTop > -rowHeight && rowTop < heightBefore.current
    // The address may name one that is not at the top.
    const isFirst = heightBefore.current === 0
    heightBefore.current = height
    if (selected !== -1 && (wasVisible || isFirst)) reveal(selected)
  }, [height])
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'Escape') onEscape()
    const { scrollTop, clientHeight } = viewport.current!
    const page = Math.max(1, Math.floor(clientHeight / rowHeight) - 1)
    // Nothing selected: the last visible row is where a reader looks.
    const isSelected = current.current !== -1
    const from = isSelected
      ? current.current
      : Math.min(count, Math.floor((scrollTop + clientHeight) / rowHeight))
    const target: Readonly<Record<string, number>> = {
      ArrowDown: from + 1,
      ArrowUp: from - 1,
      PageDown: from + page,
      PageUp: from - page,
      Home: 0,
      End: count - 1,
    }
    const next = target[event.key]
    if (next === undefined) return
    event.preventDefault()
    select(!isSelected && next >= count ? count - 1 : next)
  }
  return (
    <div
      ref={viewport}
      class="rows"
      role="listbox"
      aria-label={label}
      aria-activedescendant={selected >= first && selected < last ? `row-${selected}` : undefined}
      tabIndex={0}
      onKeyDown={onKeyDown}
      onWheel={({ deltaY, currentTarget }) => {
        // At an end, turning the wheel does not scroll.
        if (deltaY < 0 && currentTarget.scrollTop === 0) onNear('first')
        if (deltaY > 0 && currentTarget.scrollTop + height + 1 >= currentTarget.scrollHeight) onNear('last')
      }}
      onScroll={(event) => {
        const { scrollTop, scrollHeight, clientHeight } = event.currentTarget
        // A change of the height also moves the end away; only scrolling up leaves it.
        if (scrollTop + clientHeight > scrollHeight - rowHeight) onFollow(true)
        else if (scrollTop < lastTop.current) onFollow(false)
        const near = NEAR_ROWS * rowHeight
        if (scrollTop < lastTop.current && scrollTop < near) onNear('first')
        if (scrollTop > lastTop.current && scrollTop + clientHeight > scrollHeight - near) onNear('last')
        lastTop.current = scrollTop
        setTop(scrollTop)
        keepAnchor(scrollTop)
        onTop(Math.ceil(scrollTop / rowHeight))
      }}
    >
      <div role="presentation" style={{ height: `${count * rowHeight}px` }}>
        <div role="presentation" style={{ transform: `translateY(${first * rowHeight}px)` }}>
          {rows.map((index) => (
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
