import { HeadwaterError } from 'headwater'
import type { RecordView, SyncedRecord } from 'headwater/sync'
import { from, Subscription, switchMap } from 'rxjs'
import type { Alert } from './alert.ts'
import { Composer } from './composer.ts'
import { entryOf } from './message.ts'
import { MessageList } from './message-list.ts'
import { ownName } from './own-name.ts'
import type { ReadPositions } from './read-positions.ts'
import { type OpenRoom, PAGE, type Room } from './room.ts'
import { element, part } from './template.ts'

const NEAR_END_PX = 48

/** Shows one room: history first, then live messages, and those that wait at the end. */
export class Conversation {
  readonly #element = element('conversation')
  readonly #title = element('room-title')
  readonly #scroller = part(this.#element, 'scroller')
  readonly #earlier = part<HTMLButtonElement>(this.#element, 'earlier')
  readonly #newest = part<HTMLButtonElement>(this.#element, 'newest')
  readonly #list: MessageList
  readonly #composer: Composer
  readonly #positions: ReadPositions
  readonly #alert: Alert
  readonly #leave: (error: unknown) => void
  #room: Room | undefined
  #opening: Promise<OpenRoom> | undefined
  #following = Subscription.EMPTY
  /** There is nothing before the first message of the list. */
  #isWhole = false
  #isAtEnd = true
  #isUpdating = false

  /** Calls `leave` if the room does not exist. */
  constructor(positions: ReadPositions, alert: Alert, leave: (error: unknown) => void) {
    this.#positions = positions
    this.#alert = alert
    this.#leave = leave
    this.#list = new MessageList(part(this.#element, 'messages'), {
      retry: (number) => this.#do((room) => room.retry(number)).catch(() => {}),
      discard: (number) => this.#do((room) => room.discard(number)).catch(() => {}),
    })
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
    this.#begin(this.#positions.of(room.name))
    const opening = room.open()
    this.#opening = opening
    this.#following = from(opening)
      .pipe(switchMap(({ view$ }) => view$))
      .subscribe({
        next: (view) => this.#show(view),
        error: (error: unknown) => {
          if (HeadwaterError.is(error) && error.code === 'stream_not_found') this.#leave(error)
          else this.#alert.show(error, () => this.open(room))
        },
      })
  }

  close(): void {
    this.#following.unsubscribe()
    this.#opening = undefined
    this.#room = undefined
    this.#element.hidden = true
    this.#begin(0)
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

  /** Empties the page for a room that was read up to a position. */
  #begin(read: number): void {
    this.#list.begin(read > 0 ? read : Number.POSITIVE_INFINITY)
    this.#isWhole = false
    this.#isAtEnd = true
    this.#scroller.scrollTop = 0
    // Screen readers announce live messages, but not history.
    this.#scroller.ariaBusy = 'true'
    this.#earlier.hidden = true
    part(this.#element, 'no-messages').hidden = true
    this.#updateSoon()
  }

  #show({ change, isCaughtUp }: RecordView<SyncedRecord>): void {
    this.#list.apply({ ...change, inserted: change.inserted.map(entryOf) })
    if (this.#list.isLong && this.#isAtEnd) {
      this.#list.shorten()
      this.#isWhole = false
    }
    if (isCaughtUp) {
      // What comes from now on is seen as it comes.
      if (this.#scroller.ariaBusy === 'true') this.#list.keepNew()
      this.#scroller.ariaBusy = 'false'
    }
    part(this.#element, 'no-messages').hidden = this.#list.hasMessages || !isCaughtUp
    this.#updateSoon()
  }

  async #send(text: string): Promise<void> {
    await this.#do((room) => room.send(ownName(), text))
    this.#scroller.scrollTop = 0
  }

  /** Shows the error if the room cannot do something, and rejects with it. */
  async #do(work: (room: OpenRoom) => Promise<void>): Promise<void> {
    try {
      const room = await this.#opening
      if (room !== undefined) await work(room)
    } catch (error) {
      this.#alert.show(error)
      throw error
    }
  }

  async #showEarlier(): Promise<void> {
    const opening = this.#opening
    const { first } = this.#list
    try {
      const entries = first === undefined ? [] : await (await opening)?.entriesBefore(first, PAGE)
      // The view shows them, or another room may be open by now.
      if (entries === undefined || opening !== this.#opening) return
      this.#list.prepend(entries)
      this.#isWhole = entries.length === 0
      this.#showWhetherEarlier()
      if (this.#earlier.hidden) this.#scroller.focus()
    } catch (error) {
      this.#alert.show(error)
    }
  }

  /** Offers earlier messages if there may be any. */
  #showWhetherEarlier(): void {
    const { first = 0, length } = this.#list
    this.#earlier.hidden = this.#isWhole || first === 0 || length < PAGE
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
    const { end } = this.#list
    this.#showWhetherEarlier()
    if (this.#isAtEnd && document.visibilityState === 'visible') this.#positions.advance(room.name, end)
    const unread = Math.max(0, end - this.#positions.of(room.name))
    this.#newest.hidden = this.#isAtEnd
    this.#newest.textContent = unread === 0 ? 'Newest messages' : `${unread} new`
    const count = end === 1 ? '1 message' : `${end.toLocaleString()} messages`
    part(this.#element, 'count').textContent = end === 0 ? '' : count
  }
}
