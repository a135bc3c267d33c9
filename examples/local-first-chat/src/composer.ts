import { element } from './template.ts'

/** The text field for messages. Keeps a draft for each room. */
export class Composer {
  readonly #field = element<HTMLTextAreaElement>('message-text')
  readonly #drafts = new Map<string, string>()
  #room = ''

  constructor(form: HTMLElement, send: (text: string) => Promise<void>) {
    form.addEventListener('submit', (event) => {
      event.preventDefault()
      void this.#submit(send)
    })
    this.#field.addEventListener('keydown', (event) => {
      // Enter also ends the composition of a character, which must not send the message.
      if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return
      event.preventDefault()
      void this.#submit(send)
    })
  }

  switchTo(room: string): void {
    this.#drafts.set(this.#room, this.#field.value)
    this.#room = room
    this.#field.value = this.#drafts.get(room) ?? ''
    this.#field.placeholder = `Message ${room}`
  }

  focus(): void {
    this.#field.focus()
  }

  async #submit(send: (text: string) => Promise<void>): Promise<void> {
    const text = this.#field.value.trim()
    const room = this.#room
    if (text === '') return
    this.#field.value = ''
    try {
      await send(text)
    } catch {
      this.#restore(room, text)
    }
  }

  /** Puts a message that could not be sent back, before what was written meanwhile. */
  #restore(room: string, text: string): void {
    const isShown = room === this.#room
    const written = isShown ? this.#field.value : (this.#drafts.get(room) ?? '')
    const draft = written === '' ? text : `${text}\n${written}`
    if (isShown) this.#field.value = draft
    else this.#drafts.set(room, draft)
  }
}
