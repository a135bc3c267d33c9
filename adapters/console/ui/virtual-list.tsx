import type { ComponentChildren } from 'preact'
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'

/** Rows rendered beyond each edge, so that scrolling shows no gap. */
const OVERSCAN = 8

/** A list of many rows of one height, of which only the visible ones are elements. */
export function VirtualList(props: {
  readonly label: string
  readonly count: number
  /** In CSS pixels. */
  readonly rowHeight: number
  readonly renderRow: (index: number) => ComponentChildren
  readonly selected: number
  readonly onSelect: (index: number) => void
  readonly onEscape: () => void
  /** How many rows were removed from the top so far; the visible ones stay where they are. */
  readonly dropped: number
  /** Whether the list stays at its end. */
  readonly isFollowing: boolean
  readonly onFollow: (isFollowing: boolean) => void
}) {
  const { label, count, rowHeight, renderRow, selected, onSelect, onEscape } = props
  const { dropped, isFollowing, onFollow } = props
  const viewport = useRef<HTMLDivElement>(null)
  const [top, setTop] = useState(0)
  const [height, setHeight] = useState(0)
  const before = useRef(dropped)
  const lastTop = useRef(0)

  useEffect(() => {
    const element = viewport.current!
    const resized = new ResizeObserver(() => setHeight(element.clientHeight))
    resized.observe(element)
    return () => resized.disconnect()
  }, [])
  useLayoutEffect(() => {
    const element = viewport.current!
    const removed = dropped - before.current
    before.current = dropped
    if (isFollowing) element.scrollTop = element.scrollHeight
    else if (removed > 0) element.scrollTop -= removed * rowHeight
    lastTop.current = element.scrollTop
    setTop(element.scrollTop)
  }, [count, dropped, isFollowing, height, rowHeight])

  const first = Math.max(0, Math.floor(top / rowHeight) - OVERSCAN)
  const last = Math.min(count, Math.ceil((top + height) / rowHeight) + OVERSCAN)
  const rows = Array.from({ length: Math.max(0, last - first) }, (_, index) => first + index)

  const reveal = (index: number) => {
    const element = viewport.current!
    const rowTop = index * rowHeight
    if (rowTop < element.scrollTop) element.scrollTop = rowTop
    if (rowTop + rowHeight > element.scrollTop + height) element.scrollTop = rowTop + rowHeight - height
  }
  const select = (index: number) => {
    const next = Math.min(Math.max(index, 0), count - 1)
    if (next < 0) return
    onSelect(next)
    reveal(next)
  }
  // What is shown about the selected row may take the place where the row was.
  const heightBefore = useRef(0)
  useLayoutEffect(() => {
    const rowTop = selected * rowHeight - viewport.current!.scrollTop
    const wasVisible = selected !== -1 && rowTop > -rowHeight && rowTop < heightBefore.current
    heightBefore.current = height
    if (wasVisible) reveal(selected)
  }, [height])
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'Escape') onEscape()
    const page = Math.max(1, Math.floor(height / rowHeight) - 1)
    // Nothing selected: the last visible row is where a reader looks.
    const from = selected === -1 ? Math.min(count, Math.floor((top + height) / rowHeight)) : selected
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
    select(next)
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
      onScroll={(event) => {
        const { scrollTop, scrollHeight, clientHeight } = event.currentTarget
        // A change of the height also moves the end away; only scrolling up leaves it.
        if (scrollTop + clientHeight > scrollHeight - rowHeight) onFollow(true)
        else if (scrollTop < lastTop.current) onFollow(false)
        lastTop.current = scrollTop
        setTop(scrollTop)
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
