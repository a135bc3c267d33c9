import { OrderedList } from '../../../src/storage/ordered-list.ts'

interface Entry<Item> {
  readonly time: number
  /** Tells entries of the same time apart. */
  readonly serial: number
  readonly item: Item
}

/** Items by the time at which something is due for them, so that finding what is due never looks at the others. */
export class Deadlines<Item> {
  readonly #entries = new Map<Item, Entry<Item>>()
  readonly #order = new OrderedList<Entry<Item>>((a, b) => a.time - b.time || a.serial - b.serial)
  #serial = 0

  /** Sets the time of an item; `undefined` forgets the item. */
  set(item: Item, time: number | undefined): void {
    const entry = this.#entries.get(item)
    if (entry?.time === time) return
    if (entry !== undefined) {
      this.#order.delete(entry)
      this.#entries.delete(item)
    }
    if (time === undefined) return
    const next = { time, serial: this.#serial++, item }
    this.#order.add(next)
    this.#entries.set(item, next)
  }

  /** The item with the earliest time, when that time is at or before `now`. */
  due(now: number): Item | undefined {
    const entry = this.#order.first()
    return entry !== undefined && entry.time <= now ? entry.item : undefined
  }
}
