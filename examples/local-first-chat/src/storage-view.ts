import { bytesText } from './bytes.ts'
import { storage } from './storage.ts'
import { element, part } from './template.ts'

const LOW_SHARE = 0.8

/** Shows the used space, the quota, and whether the browser may delete the data. */
export class StorageView {
  readonly #element = element('storage')
  readonly #usage = part(this.#element, 'usage')
  readonly #meter = part<HTMLMeterElement>(this.#element, 'meter')
  readonly #persisted = part(this.#element, 'persisted')
  readonly #persist = part<HTMLButtonElement>(this.#element, 'persist')

  constructor() {
    this.#persist.addEventListener('click', () => void this.#keep())
    storage.lowSpace$.subscribe(() => void this.show())
  }

  async show(): Promise<void> {
    const { usedBytes, quotaBytes, persisted } = await storage.usage()
    if (usedBytes !== undefined && quotaBytes !== undefined) {
      this.#meter.max = quotaBytes
      this.#meter.high = quotaBytes * LOW_SHARE
      this.#meter.optimum = 0
      this.#meter.value = usedBytes
      this.#meter.title = `${bytesText(usedBytes)} of ${bytesText(quotaBytes)}`
      this.#usage.textContent = `${this.#meter.title} used${usedBytes < this.#meter.high ? '' : ': nearly full'}`
    } else {
      this.#usage.textContent = 'This browser does not report how much is stored.'
    }
    this.#persisted.textContent = persisted
      ? 'Persisted: the browser keeps it.'
      : 'Not persisted: may be cleared.'
    this.#persist.hidden = persisted === true
  }

  async #keep(): Promise<void> {
    if (await storage.persist()) await this.show()
    else this.#persisted.textContent = 'The browser declined. It agrees sooner to sites that are used often.'
  }
}
