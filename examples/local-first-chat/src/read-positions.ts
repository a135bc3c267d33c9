import { filter, fromEvent, map, merge, type Observable, Subject } from 'rxjs'
import { keep, kept } from './kept.ts'
import { ownName } from './own-name.ts'

/** The position after the last message read in each room, shared by all tabs with the same user name. */
export class ReadPositions {
  readonly #changed = new Subject<string | undefined>()
  readonly #seen = new Map<string, number>()

  of(room: string): number {
    const key = keyOf(room)
    return Math.max(this.#seen.get(key) ?? 0, Number(kept(key) ?? 0))
  }

  /** Ignores positions below the current one. */
  advance(room: string, position: number): void {
    if (position <= this.of(room)) return
    const key = keyOf(room)
    this.#seen.set(key, position)
    keep(key, String(position))
    this.#changed.next(key)
  }

  /** Reports changes of all positions, after the user changed their name. */
  changeAll(): void {
    this.#changed.next(undefined)
  }

  /** Emits when the position of a room changes, here or in another tab. */
  changesOf(room: string): Observable<unknown> {
    const elsewhere = fromEvent<StorageEvent>(window, 'storage').pipe(map(({ key }) => key ?? undefined))
    return merge(this.#changed, elsewhere).pipe(filter((key) => key === undefined || key === keyOf(room)))
  }
}

function keyOf(room: string): string {
  return `brook/read/${JSON.stringify([ownName(), room])}`
}
