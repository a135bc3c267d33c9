import { merge, retry, type Subscription, tap } from 'rxjs'
import type { ReadPositions } from './read-positions.ts'
import type { Latest, Room } from './room.ts'
import { addressOf } from './room-address.ts'
import { copyOf, part } from './template.ts'
import { showTime, timeOrDay } from './time.ts'

const RETRY_MS = 1_000
const PREVIEW_LENGTH = 120
const UNREAD_SHOWN_MAX = 99

/** A room in the list. Follows its stream to show the latest message and the number of unread ones. */
export class RoomItem {
  readonly element = copyOf('room-template')
  readonly name: string
  readonly #link = this.element.querySelector('a')!
  readonly #positions: ReadPositions
  readonly #following: Subscription
  #latest: Latest | undefined
  #unread = 0

  constructor(room: Room, positions: ReadPositions, onChange: () => void) {
    this.name = room.name
    this.#positions = positions
    this.#link.href = addressOf(room.name)
    part(this.element, 'name').textContent = room.name
    const latest$ = room.latest$.pipe(
      tap((latest) => {
        this.#latest = latest
      }),
      // Nothing of the room may be on this device yet, or the storage may be busy.
      retry({ delay: RETRY_MS }),
    )
    this.#following = merge(latest$, positions.changesOf(room.name)).subscribe(() => {
      this.#show()
      onChange()
    })
  }

  remove(): void {
    this.#following.unsubscribe()
    this.element.remove()
  }

  get unread(): number {
    return this.#unread
  }

  set isSelected(isSelected: boolean) {
    if (isSelected) this.#link.setAttribute('aria-current', 'page')
    else this.#link.removeAttribute('aria-current')
  }

  focus(): void {
    this.#link.focus()
  }

  #show(): void {
    if (this.#latest === undefined) return
    const { message, end } = this.#latest
    const { author, text, sentAt } = message
    this.#unread = Math.max(0, end - this.#positions.of(this.name))
    part(this.element, 'preview').textContent = `${author}: ${text.slice(0, PREVIEW_LENGTH)}`
    showTime(part<HTMLTimeElement>(this.element, 'time'), sentAt, timeOrDay(sentAt))
    const badge = part(this.element, 'unread')
    badge.hidden = this.#unread === 0
    badge.textContent = this.#unread > UNREAD_SHOWN_MAX ? `${UNREAD_SHOWN_MAX}+` : String(this.#unread)
    badge.setAttribute('aria-label', `${this.#unread} unread`)
  }
}
