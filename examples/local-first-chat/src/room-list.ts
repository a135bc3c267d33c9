import type { Chat } from './chat.ts'
import type { ReadPositions } from './read-positions.ts'
import { RoomItem } from './room-item.ts'
import { element } from './template.ts'

const byName = new Intl.Collator(undefined, { numeric: true })

/** The list of rooms, sorted by name so that it does not move when messages arrive. */
export class RoomList {
  readonly #element = element('rooms')
  readonly #chat: Chat
  readonly #positions: ReadPositions
  readonly #onChange: () => void
  #items: RoomItem[] = []
  #selected: string | undefined

  constructor(chat: Chat, positions: ReadPositions, onChange: () => void) {
    this.#chat = chat
    this.#positions = positions
    this.#onChange = onChange
  }

  /** The number of unread messages in all rooms. */
  get unread(): number {
    return this.#items.reduce((sum, { unread }) => sum + unread, 0)
  }

  /** Adds and removes items. The others keep their elements, and with them the focus. */
  show(names: readonly string[]): void {
    const wanted = new Set(names)
    for (const item of this.#items) if (!wanted.has(item.name)) item.remove()
    const kept = this.#items.filter(({ name }) => wanted.has(name))
    const shown = new Set(kept.map(({ name }) => name))
    const added = names.filter((name) => !shown.has(name)).map((name) => this.#itemOf(name))
    this.#items = [...kept, ...added].sort((one, other) => byName.compare(one.name, other.name))
    for (const [index, item] of this.#items.entries()) {
      const current = this.#element.children[index] ?? null
      if (current !== item.element) this.#element.insertBefore(item.element, current)
    }
    element('no-rooms').hidden = names.length > 0
    this.#onChange()
  }

  select(name: string | undefined): void {
    this.#selected = name
    for (const item of this.#items) item.isSelected = item.name === name
  }

  focus(name: string): void {
    this.#items.find((item) => item.name === name)?.focus()
  }

  /** The name of the room `steps` places below the selected one. */
  neighbour(steps: number): string | undefined {
    const index = this.#items.findIndex(({ name }) => name === this.#selected)
    return this.#items[index < 0 ? 0 : index + steps]?.name
  }

  #itemOf(name: string): RoomItem {
    const item = new RoomItem(this.#chat.room(name), this.#positions, this.#onChange)
    item.isSelected = name === this.#selected
    return item
  }
}
