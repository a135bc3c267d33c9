import { filter, fromEvent, map, merge, type Observable, Subject } from 'rxjs'
import { keep, kept } from './kept.ts'
import { ownName } from './own-name.ts'

/** How far each room has been read: the position after the last message that was seen, in any tab of the same name. */
export class ReadPositions {
  readonly #changed = new Subject<string | undefined>()
  readonly #seen = new Map<string, number>()

  of(room: string): number {
    const key = keyOf(room)
    return Math.max(this.#seen.get(key) ?? 0, Number(kept(key) ?? 0))
  }

  /** Positions only grow. */
  advance(room: string, position: number): void {
    if (position <= this.of(room)) return
    const key = keyOf(room)
    this.#seen.set(key, position)
    keep(key, String(position))
    this.#changed.next(key)
  }

  /** After the own name was changed: its positions are others. */
  changeAll(): void {
    this.#changed.next(undefined)
  }

  /** When a room was read on, here or in another tab. */
  changesOf(room: string): Observable<unknown> {
    const elsewhere = fromEvent<StorageEvent>(window, 'storage').pipe(map(({ key }) => key ?? undefined))
    return merge(this.#changed, elsewhere).pipe(filter((key) => key === undefined || key === keyOf(room)))
  }
}

function keyOf(room: string): string {
  return `brook/read/${JSON.stringify([ownName(), room])}`
}
