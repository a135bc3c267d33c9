import { showAvatar } from './avatar.ts'
import type { Message } from './message.ts'
import { ownName } from './own-name.ts'
import { copyOf, part } from './template.ts'
import { dayName, isSameDay, showTime } from './time.ts'

const TOGETHER_MS = 300_000
const TEXT_SHOWN_LENGTH = 800
const MESSAGES_MAX = 800
const MESSAGES_KEPT = 400

/** A message and its elements; separators come first. */
interface Entry {
  readonly message: Message
  elements: readonly HTMLElement[]
}

/** The messages on the page, with separators for days and for the first unread message. */
export class MessageList {
  readonly #element: HTMLElement
  #entries: Entry[] = []
  #newFrom = Number.POSITIVE_INFINITY

  constructor(element: HTMLElement) {
    this.#element = element
  }

  get first(): Message | undefined {
    return this.#entries[0]?.message
  }

  get isLong(): boolean {
    return this.#entries.length > MESSAGES_MAX
  }

  /** Clears the list. Messages from position `newFrom` on are marked as new. */
  begin(newFrom: number): void {
    this.#newFrom = newFrom
    this.#entries = []
    this.#element.replaceChildren()
  }

  append(message: Message): void {
    const elements = this.#elementsOf(message, this.#entries.at(-1)?.message)
    this.#entries.push({ message, elements })
    this.#element.append(...elements)
  }

  prepend(messages: readonly Message[]): void {
    const added = messages.map((message, i) => ({
      message,
      elements: this.#elementsOf(message, messages[i - 1]),
    }))
    this.#element.prepend(...added.flatMap(({ elements }) => elements))
    this.#entries.unshift(...added)
    // This message was the first, and now follows another.
    this.#redraw(added.length)
  }

  /** Removes the oldest messages. */
  shorten(): void {
    for (const { elements } of this.#entries.splice(0, this.#entries.length - MESSAGES_KEPT)) remove(elements)
    this.#redraw(0)
  }

  /** Updates all messages after the user changed their name. */
  redraw(): void {
    for (const index of this.#entries.keys()) this.#redraw(index)
  }

  #redraw(index: number): void {
    const entry = this.#entries[index]
    if (entry === undefined) return
    const elements = this.#elementsOf(entry.message, this.#entries[index - 1]?.message)
    entry.elements[0]!.before(...elements)
    remove(entry.elements)
    entry.elements = elements
  }

  #elementsOf(message: Message, before: Message | undefined): readonly HTMLElement[] {
    const beginsDay = before === undefined || !isSameDay(before.sentAt, message.sentAt)
    const beginsNew = message.seqNum >= this.#newFrom && (before?.seqNum ?? -1) < this.#newFrom
    const element = messageElement(message)
    const follows = before?.author === message.author && isTogether(before, message)
    element.classList.toggle('continued', follows && !beginsDay && !beginsNew)
    return [
      ...(beginsDay ? [separator(dayName(message.sentAt), 'of-day')] : []),
      ...(beginsNew ? [separator('New', 'of-new')] : []),
      element,
    ]
  }
}

function remove(elements: readonly HTMLElement[]): void {
  for (const element of elements) element.remove()
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

function messageElement({ author, text, sentAt }: Message): HTMLElement {
  const element = copyOf('message-template')
  element.classList.toggle('own', author === ownName())
  showAvatar(part(element, 'avatar'), author)
  part(element, 'author').textContent = author
  showTime(part<HTMLTimeElement>(element, 'time'), sentAt)
  const body = part(element, 'text')
  body.textContent = text
  if (text.length > TEXT_SHOWN_LENGTH) {
    // Does not end with half a surrogate pair.
    body.textContent = `${text.slice(0, TEXT_SHOWN_LENGTH).replace(/[\uD800-\uDBFF]$/, '')} …`
    const more = part<HTMLButtonElement>(element, 'more')
    more.textContent = `Show all ${text.length.toLocaleString()} characters`
    more.hidden = false
    more.addEventListener('click', () => {
      body.textContent = text
      more.hidden = true
    })
  }
  return element
}
