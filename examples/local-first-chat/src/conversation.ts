import { HeadwaterError } from 'headwater'
import { from, Subscription, switchMap } from 'rxjs'
import type { Alert } from './alert.ts'
import { Composer } from './composer.ts'
import type { Entry } from './message.ts'
import { MessageList } from './message-list.ts'
import { ownName } from './own-name.ts'
import type { ReadPositions } from './read-positions.ts'
import type { Room } from './room.ts'
import { element, part } from './template.ts'

const PAGE = 100
const NEAR_END_PX = 48

/** Shows one room: history first, then live messages. */
export class Conversation {
  readonly #element = element('conversation')
  readonly #title = element('room-title')
  readonly #scroller = part(this.#element, 'scroller')
  readonly #earlier = part<HTMLButtonElement>(this.#element, 'earlier')
  readonly #newest = part<HTMLButtonElement>(this.#element, 'newest')
  readonly #list = new MessageList(part(this.#element, 'messages'))
  readonly #composer: Composer
  readonly #positions: ReadPositions
  readonly #alert: Alert
  readonly #leave: (error: unknown) => void
  #room: Room | undefined
  #following = Subscription.EMPTY
  /** The positions of the first loaded record, and after the last. */
  #first = 0
  #end = 0
  /** The tail when the room was opened. */
  #historyEnd = 0
  #isAtEnd = true
  #isUpdating = false

  /** Calls `leave` if the room does not exist or was deleted. */
  constructor(positions: ReadPositions, alert: Alert, leave: (error: unknown) => void) {
    this.#positions = positions
    this.#alert = alert
    this.#leave = leave
    this.#composer = new Composer(part(this.#element, 'composer'), (text) => this.#send(text))
    this.#earlier.addEventListener('click', () => void this.#showEarlier())
    this.#newest.addEventListener('click', () => {
      this.#scroller.scrollTop = 0
    })
    this.#scroller.addEventListener('scroll', () => {
      // The list is laid out from its end, at position 0.
      this.#isAtEnd = this.#scroller.scrollTop > -NEAR_END_PX
      this.#updateSoon()
    })
    document.addEventListener('visibilitychange', () => this.#updateSoon())
  }

  open(room: Room): void {
    this.close()
    this.#room = room
    this.#title.textContent = room.name
    this.#composer.switchTo(room.name)
    this.#element.hidden = false
    this.#following = from(room.tail())
      .pipe(switchMap((tail) => room.entriesFrom(this.#begin(room, tail))))
      .subscribe({
        next: (entry) => this.#add(entry),
        error: (error: unknown) => {
          if (HeadwaterError.is(error) && error.code === 'stream_not_found') this.#leave(error)
          else this.#alert.show(error, () => this.open(room))
        },
      })
  }

  close(): void {
    this.#following.unsubscribe()
    this.#room = undefined
    this.#element.hidden = true
    this.#begin(undefined, 0)
  }

  /** Focuses the text field, except on devices where that opens an on-screen keyboard. */
  focus(): void {
    if (matchMedia('(hover: hover) and (pointer: fine)').matches) this.#composer.focus()
    else this.#title.focus()
  }

  /** Updates the messages after the user changed their name. */
  redraw(): void {
    this.#list.redraw()
  }

  /** Prepares the page for a room with this tail. Returns the position of the first message to show. */
  #begin(room: Room | undefined, tail: number): number {
    const read = room === undefined ? 0 : this.#positions.of(room.name)
    this.#list.begin(read > 0 && read < tail ? read : Number.POSITIVE_INFINITY)
    this.#end = 0
    this.#isAtEnd = true
    this.#scroller.scrollTop = 0
    // Screen readers announce live messages, but not history.
    this.#historyEnd = tail
    this.#scroller.ariaBusy = String(tail > 0)
    this.#earlier.hidden = tail <= PAGE
    part(this.#element, 'no-messages').hidden = room === undefined || tail > 0
    this.#updateSoon()
    this.#first = Math.max(0, tail - PAGE)
    return this.#first
  }

  #add({ end, message }: Entry): void {
    if (message !== undefined) this.#list.append(message)
    this.#end = end
    // The last records of the history may have expired meanwhile.
    if (end >= this.#historyEnd) this.#scroller.ariaBusy = 'false'
    if (this.#list.isLong && this.#isAtEnd) {
      this.#list.shorten()
      this.#first = this.#list.first!.seqNum
      this.#earlier.hidden = false
    }
    part(this.#element, 'no-messages').hidden = this.#list.first !== undefined || end < this.#historyEnd
    this.#updateSoon()
  }

  async #send(text: string): Promise<void> {
    try {
      await this.#room?.send(ownName(), text)
      this.#scroller.scrollTop = 0
    } catch (error) {
      this.#alert.show(error)
      throw error
    }
  }

  async #showEarlier(): Promise<void> {
    const room = this.#room
    try {
      const entries = await room?.entriesBefore(this.#first, PAGE)
      // Another room may be open by now.
      if (entries === undefined || room !== this.#room) return
      this.#list.prepend(entries.flatMap(({ message }) => message ?? []))
      this.#first = Math.max(0, this.#first - PAGE)
      this.#earlier.hidden = entries.length === 0 || this.#first === 0
      if (this.#earlier.hidden) this.#scroller.focus()
    } catch (error) {
      this.#alert.show(error)
    }
  }

  /** Updates read position and counts, at most once per frame. */
  #updateSoon(): void {
    if (this.#isUpdating) return
    this.#isUpdating = true
    requestAnimationFrame(() => {
      this.#isUpdating = false
      this.#update()
    })
  }

  #update(): void {
    const room = this.#room
    if (room === undefined) return
    if (this.#isAtEnd && document.visibilityState === 'visible') this.#positions.advance(room.name, this.#end)
    const unread = Math.max(0, this.#end - this.#positions.of(room.name))
    this.#newest.hidden = this.#isAtEnd
    this.#newest.textContent = unread === 0 ? 'Newest messages' : `${unread} new`
    const count = this.#end === 1 ? '1 message' : `${this.#end.toLocaleString()} messages`
    part(this.#element, 'count').textContent = this.#end === 0 ? '' : count
  }
}
