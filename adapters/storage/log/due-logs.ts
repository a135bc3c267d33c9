import { ByteReader } from './bytes.ts'
import { entriesOf, type TablePart } from './table.ts'

interface DueLog {
  readonly at: number
  readonly id: string
}

/**
 * When logs may have something to free, earliest first: a binary heap, in which a log that was scheduled
 * again leaves a stale entry behind. The logs of a part of the checkpoint are added when the earliest of them
 * is due.
 */
export class DueLogs {
  readonly #heap: DueLog[] = []
  readonly #times = new Map<string, number>()
  /** Descending by time. */
  #parts: TablePart[] = []

  /** Takes the logs of a checkpoint. Those that changed later stay. */
  replaceParts(parts: readonly TablePart[], isChanged: (id: string) => boolean): void {
    this.#parts = parts.filter(({ due }) => due !== null).sort((a, b) => b.due! - a.due!)
    const changed = [...this.#times].filter(([id]) => isChanged(id))
    this.#heap.length = 0
    this.#times.clear()
    for (const [id, at] of changed) this.schedule(id, at)
  }

  /** Looks at a log at this time, in milliseconds, or earlier if it is scheduled then. Null is never. */
  schedule(id: string, at: number | null): void {
    const known = this.#times.get(id)
    if (at === null || (known !== undefined && known <= at)) return
    this.#times.set(id, at)
    this.#push({ at, id })
  }

  /** The time of a log that is scheduled. */
  timeOf(id: string): number | undefined {
    return this.#times.get(id)
  }

  /** Takes the next log that is due at or before `until`. */
  take(until: number): string | undefined {
    while ((this.#parts.at(-1)?.due ?? Number.POSITIVE_INFINITY) <= until) this.#addPart(this.#parts.pop()!)
    while (this.#heap.length > 0 && this.#heap[0]!.at <= until) {
      const { at, id } = this.#pop()
      if (this.#times.get(id) === at) {
        this.#times.delete(id)
        return id
      }
    }
    return undefined
  }

  #addPart({ entries }: TablePart): void {
    for (const { key, entry } of entriesOf(entries, 0)) this.schedule(key, dueOfEntry(entry))
  }

  #push(log: DueLog): void {
    const heap = this.#heap
    let index = heap.push(log) - 1
    while (index > 0) {
      const parent = (index - 1) >> 1
      if (heap[parent]!.at <= log.at) break
      heap[index] = heap[parent]!
      index = parent
    }
    heap[index] = log
  }

  #pop(): DueLog {
    const heap = this.#heap
    const first = heap[0]!
    const last = heap.pop()!
    if (heap.length === 0) return first
    let index = 0
    for (;;) {
      let child = 2 * index + 1
      if (child >= heap.length) break
      if (child + 1 < heap.length && heap[child + 1]!.at < heap[child]!.at) child++
      if (heap[child]!.at >= last.at) break
      heap[index] = heap[child]!
      index = child
    }
    heap[index] = last
    return first
  }
}

/** The due time in the entry of a log, which follows its key. */
export function dueOfEntry(entry: Buffer): number | null {
  const reader = new ByteReader(entry)
  reader.varint()
  reader.skipString()
  return reader.optional()
}
