import { LEVELS, type Level, type Line } from './line.ts'

/** So many lines are kept in the page; earlier ones are in the stream. */
const LINES_MAX = 5_000

/** The lines of the log that match a search and have a chosen level. */
export class LogView {
  readonly #list: HTMLElement
  readonly #onCounts: (counts: Readonly<Record<Level, number>>, shown: number) => void
  readonly #shown = new Set<Level>(LEVELS)
  readonly #rows: { readonly line: Line; readonly row: HTMLElement }[] = []
  #search = ''

  constructor(list: HTMLElement, onCounts: (counts: Readonly<Record<Level, number>>, shown: number) => void) {
    this.#list = list
    this.#onCounts = onCounts
  }

  /** Adds lines at the end. Keeps the end in view if it was. */
  add(lines: readonly Line[]): void {
    const isAtEnd = this.isAtEnd
    const added = document.createDocumentFragment()
    for (const line of lines) {
      const row = rowOf(line)
      this.#apply(line, row)
      this.#rows.push({ line, row })
      added.append(row)
    }
    this.#list.append(added)
    for (const { row } of this.#rows.splice(0, Math.max(0, this.#rows.length - LINES_MAX))) row.remove()
    this.#count()
    if (isAtEnd) this.scrollToEnd()
  }

  search(text: string): void {
    this.#search = text.trim().toLowerCase()
    this.#applyAll()
  }

  toggle(level: Level, isShown: boolean): void {
    if (isShown) this.#shown.add(level)
    else this.#shown.delete(level)
    this.#applyAll()
  }

  /** Whether the latest line is in view. */
  get isAtEnd(): boolean {
    const { scrollTop, scrollHeight, clientHeight } = this.#list
    return scrollHeight - scrollTop - clientHeight < 40
  }

  scrollToEnd(): void {
    this.#list.scrollTop = this.#list.scrollHeight
  }

  #applyAll(): void {
    for (const { line, row } of this.#rows) this.#apply(line, row)
    this.#count()
    this.scrollToEnd()
  }

  #apply(line: Line, row: HTMLElement): void {
    const isFound = this.#search === '' || line.searched.includes(this.#search)
    row.hidden = !isFound || !this.#shown.has(line.level)
    if (!row.hidden) row.lastElementChild!.replaceChildren(...marked(line.text, this.#search))
  }

  #count(): void {
    const counts = { ERROR: 0, WARN: 0, INFO: 0, DEBUG: 0 }
    let shown = 0
    for (const { line, row } of this.#rows) {
      counts[line.level]++
      if (!row.hidden) shown++
    }
    this.#onCounts(counts, shown)
  }
}

function rowOf({ time, level, seqNum }: Line): HTMLElement {
  const row = document.createElement('li')
  row.dataset.level = level
  row.title = `Record ${seqNum}`
  const [clock, badge, text] = ['time', 'b', 'span'].map((name) => document.createElement(name))
  clock!.textContent = time.toLocaleTimeString([], { hour12: false })
  badge!.textContent = level
  row.append(clock!, badge!, text!)
  return row
}

/** The text with what was searched in `mark` elements. */
function marked(text: string, search: string): (string | HTMLElement)[] {
  if (search === '') return [text]
  const parts: (string | HTMLElement)[] = []
  const lower = text.toLowerCase()
  let from = 0
  for (let at = lower.indexOf(search); at !== -1; at = lower.indexOf(search, from)) {
    const mark = document.createElement('mark')
    mark.textContent = text.slice(at, at + search.length)
    parts.push(text.slice(from, at), mark)
    from = at + search.length
  }
  return [...parts, text.slice(from)]
}
