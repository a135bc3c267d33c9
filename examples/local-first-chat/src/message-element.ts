import { showAvatar } from './avatar.ts'
import type { Message } from './message.ts'
import { ownName } from './own-name.ts'
import { explain } from './problem.ts'
import { copyOf, part } from './template.ts'
import { showTime } from './time.ts'

const TEXT_SHOWN_LENGTH = 800

/** What the user can do with a message that the server has refused. */
export interface MessageActions {
  readonly retry: (number: number) => unknown
  readonly discard: (number: number) => unknown
}

/** One message on the page. */
export class MessageElement {
  readonly root = copyOf('message-template')
  readonly #text = part(this.root, 'text')
  readonly #more = part<HTMLButtonElement>(this.root, 'more')
  #message: Message | undefined

  constructor(actions: MessageActions) {
    this.#more.addEventListener('click', () => {
      this.#text.textContent = this.#message?.text ?? ''
      this.#more.hidden = true
    })
    for (const action of ['retry', 'discard'] as const) {
      part(this.root, action).addEventListener('click', () => {
        const number = this.#message?.number
        if (number !== undefined) actions[action](number)
      })
    }
  }

  /** Shows a message, or its next state. The text of a message never changes. */
  show(message: Message): void {
    const { author, sentAt } = message
    if (this.#message === undefined) this.#showText(message.text)
    this.#message = message
    this.root.classList.toggle('own', author === ownName())
    showAvatar(part(this.root, 'avatar'), author)
    part(this.root, 'author').textContent = author
    showTime(part<HTMLTimeElement>(this.root, 'time'), sentAt)
    this.#showState(message)
  }

  #showState({ number, error }: Message): void {
    this.root.classList.toggle('pending', number !== undefined)
    this.root.classList.toggle('refused', error !== undefined)
    part(this.root, 'state').hidden = number === undefined
    part(this.root, 'state-text').textContent =
      error === undefined ? 'Not sent yet' : `Not sent: ${explain(error)}`
    for (const action of ['retry', 'discard']) part(this.root, action).hidden = error === undefined
  }

  #showText(text: string): void {
    this.#more.hidden = text.length <= TEXT_SHOWN_LENGTH
    // Does not end with half a surrogate pair.
    const shown = `${text.slice(0, TEXT_SHOWN_LENGTH).replace(/[\uD800-\uDBFF]$/, '')} …`
    this.#text.textContent = this.#more.hidden ? text : shown
    this.#more.textContent = `Show all ${text.length.toLocaleString()} characters`
  }
}
