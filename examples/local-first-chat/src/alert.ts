import { explain } from './problem.ts'
import { element, part } from './template.ts'

/** Shows an error until it is dismissed or retried. */
export class Alert {
  readonly #element = element('alert')
  readonly #retry = part<HTMLButtonElement>(this.#element, 'retry')

  constructor() {
    part(this.#element, 'dismiss').addEventListener('click', () => this.hide())
  }

  show(error: unknown, retry?: () => void): void {
    part(this.#element, 'text').textContent = explain(error)
    this.#retry.hidden = retry === undefined
    this.#retry.onclick = () => {
      this.hide()
      retry?.()
    }
    this.#element.hidden = false
  }

  hide(): void {
    this.#element.hidden = true
  }
}
