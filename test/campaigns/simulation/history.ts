import { createHash } from 'node:crypto'

/** All events of a run as JSON lines. Two runs with the same seed have the same history. */
export class History {
  readonly #lines: string[] = []
  #step = 0

  beginStep(step: number): void {
    this.#step = step
  }

  add(actor: string, event: string, details: Readonly<Record<string, unknown>> = {}): void {
    this.#lines.push(JSON.stringify({ step: this.#step, actor, event, ...details }))
  }

  get lines(): readonly string[] {
    return this.#lines
  }

  get digest(): string {
    return createHash('sha256').update(this.#lines.join('\n')).digest('hex').slice(0, 16)
  }
}
