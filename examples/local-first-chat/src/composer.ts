import { element } from './template.ts'

/** Where messages are written. What is not sent yet is kept for each room. */
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
      // An Enter that ends the composition of a character sends nothing.
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
      this.#giveBack(room, text)
    }
  }

  /** What could not be sent stands before what was written meanwhile. */
  #giveBack(room: string, text: string): void {
    const isShown = room === this.#room
    const since = isShown ? this.#field.value : (this.#drafts.get(room) ?? '')
    const draft = since === '' ? text : `${text}\n${since}`
    if (isShown) this.#field.value = draft
    else this.#drafts.set(room, draft)
  }
}
