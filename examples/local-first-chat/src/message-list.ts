import type { ListChange } from 'headwater/sync'
import type { Entry, Message } from './message.ts'
import { type MessageActions, MessageElement } from './message-element.ts'
import { copyOf, part } from './template.ts'
import { dayName, isSameDay } from './time.ts'

const TOGETHER_MS = 300_000
const ROWS_MAX = 800
const ROWS_KEPT = 400

/** A record and its elements; separators come first. Records that are not messages have none. */
interface Row {
  readonly entry: Entry
  readonly element: MessageElement | undefined
  separators: readonly HTMLElement[]
}

/** The messages on the page, with separators for days and for the first unread message. */
export class MessageList {
  readonly #element: HTMLElement
  readonly #actions: MessageActions
  #rows: Row[] = []
  /** The index of the first row of the view: earlier ones are before it. Negative: its first are not shown. */
  #offset = 0
  #newFrom = Number.POSITIVE_INFINITY

  constructor(element: HTMLElement, actions: MessageActions) {
    this.#element = element
    this.#actions = actions
  }

  /** The number of records, which includes those that are not messages. */
  get length(): number {
    return this.#rows.length
  }

  get hasMessages(): boolean {
    return this.#rows.some(({ entry }) => entry.message !== undefined)
  }

  /** The position after the last record that is on the server. */
  get end(): number {
    return this.#rows.findLast(({ entry }) => entry.end !== undefined)?.entry.end ?? 0
  }

  /** The position of the first record; undefined if none is on the server. */
  get first(): number | undefined {
    const end = this.#rows[0]?.entry.end
    return end === undefined ? undefined : end - 1
  }

  get isLong(): boolean {
    return this.#rows.length > ROWS_MAX
  }

  /** Clears the list. Messages from position `newFrom` on are marked as new. */
  begin(newFrom: number): void {
    this.#newFrom = newFrom
    this.#rows = []
    this.#offset = 0
    this.#element.replaceChildren()
  }

  /** Marks no further messages as new if none is so far. */
  keepNew(): void {
    if (this.end <= this.#newFrom) this.#newFrom = Number.POSITIVE_INFINITY
  }

  /** Applies a change of the view. Only what changed is rendered. */
  apply({ index, removed, inserted }: ListChange<Entry>): void {
    const [from, to] = [index + this.#offset, index + removed + this.#offset]
    if (to < 0 || (to === 0 && inserted.length === 0)) {
      // Records that are not shown any more.
      this.#offset += removed - inserted.length
    } else if (from < 0) {
      this.#offset = -index
      this.#replace(0, to, inserted)
    } else if (index === 0 && removed > 0 && inserted.length === 0) {
      // Trimmed, or begun again: what was fetched before is void too.
      this.#offset = 0
      this.#replace(0, to, inserted)
    } else this.#replace(from, removed, inserted)
  }

  prepend(entries: readonly Entry[]): void {
    this.#offset += entries.length
    this.#replace(0, 0, entries)
  }

  /** Removes the oldest messages. */
  shorten(): void {
    const count = this.#rows.length - ROWS_KEPT
    this.#offset -= count
    this.#replace(0, count, [])
  }

  /** Updates all messages after the user changed their name. */
  redraw(): void {
    for (const [index, { entry, element }] of this.#rows.entries()) {
      if (entry.message !== undefined) element?.show(entry.message)
      this.#arrange(index)
    }
  }

  #replace(index: number, removed: number, inserted: readonly Entry[]): void {
    const before = new Map(this.#rows.slice(index, index + removed).map((row) => [row.entry.key, row]))
    const rows = inserted.map((entry) => {
      const row = this.#rowOf(entry, before.get(entry.key))
      before.delete(entry.key)
      return row
    })
    for (const { element, separators } of before.values()) remove(element?.root, ...separators)
    this.#rows.splice(index, removed, ...rows)
    this.#place(index, rows)
    // The message behind them follows another one now.
    const next = this.#rows.findIndex(({ element }, at) => at >= index + rows.length && element !== undefined)
    if (next >= 0) this.#arrange(next)
  }

  /** Keeps the element of a message from pending to confirmed. */
  #rowOf(entry: Entry, before: Row | undefined): Row {
    const { message } = entry
    if (message === undefined) return { entry, element: undefined, separators: [] }
    const element = before?.element ?? new MessageElement(this.#actions)
    element.show(message)
    return { entry, element, separators: before?.separators ?? [] }
  }

  #place(index: number, rows: readonly Row[]): void {
    const next = this.#rows.slice(index + rows.length).find(({ element }) => element !== undefined)
    const behind = next === undefined ? null : (next.separators[0] ?? next.element!.root)
    const elements = rows.flatMap(({ element }) => element?.root ?? [])
    const isPlaced = elements.every(({ isConnected }) => isConnected)
    if (!isPlaced) for (const element of elements) this.#element.insertBefore(element, behind)
    for (const at of rows.keys()) this.#arrange(index + at)
  }

  /** Makes the separators of a message, and joins it with the one before. */
  #arrange(index: number): void {
    const row = this.#rows[index]!
    const { entry, element } = row
    if (entry.message === undefined || element === undefined) return
    const before = this.#messageBefore(index)
    const { message } = entry
    const beginsDay = before === undefined || !isSameDay(before.sentAt, message.sentAt)
    const beginsNew = (message.seqNum ?? -1) >= this.#newFrom && (before?.seqNum ?? -1) < this.#newFrom
    const follows = before?.author === message.author && isTogether(before, message)
    element.root.classList.toggle('continued', follows && !beginsDay && !beginsNew)
    remove(...row.separators)
    row.separators = [
      ...(beginsDay ? [separator(dayName(message.sentAt), 'of-day')] : []),
      ...(beginsNew ? [separator('New', 'of-new')] : []),
    ]
    element.root.before(...row.separators)
  }

  #messageBefore(index: number): Message | undefined {
    for (let at = index - 1; at >= 0; at--) {
      const { message } = this.#rows[at]!.entry
      if (message !== undefined) return message
    }
    return undefined
  }
}

function remove(...elements: readonly (HTMLElement | undefined)[]): void {
  for (const element of elements) element?.remove()
}

function isTogether(before: Message, message: Message): boolean {
  return message.sentAt.getTime() - before.sentAt.getTime() < TOGETHER_MS
}

function separator(text: string, kind: string): HTMLElement {
  const element = copyOf('separator-template')
  element.classList.add(kind)
  part(element, 'text').textContent = text
  return element
}
