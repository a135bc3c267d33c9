import type { Campaign } from './campaign.ts'

const LINES = 10

/**
 * Prints the progress of a whole campaign, and a closing line such as `kill: 200 rounds passed, 0 failed`.
 * Silent in tests.
 */
export class Progress {
  passed = 0
  failed = 0
  readonly #campaign: Pick<Campaign<unknown>, 'name' | 'runsAll'>
  readonly #unit: string
  readonly #total: number

  /** `unit` is a plural noun, such as `rounds`. */
  constructor(campaign: Pick<Campaign<unknown>, 'name' | 'runsAll'>, unit: string, total: number) {
    this.#campaign = campaign
    this.#unit = unit
    this.#total = total
  }

  pass(count = 1): void {
    this.#count('passed', count)
  }

  fail(count = 1): void {
    this.#count('failed', count)
  }

  /** Prints the closing line; `details` are appended to it. */
  close(details = ''): void {
    const more = details === '' ? '' : ` (${details})`
    const passed = `${formatted(this.passed)} ${this.#unit} passed`
    this.#print(`${this.#campaign.name}: ${passed}, ${formatted(this.failed)} failed${more}`)
  }

  #count(outcome: 'passed' | 'failed', count: number): void {
    const before = this.#tenths
    this[outcome] += count
    const done = this.passed + this.failed
    if (this.#tenths === before || done >= this.#total) return
    this.#print(`${this.#campaign.name}: ${formatted(done)} of ${formatted(this.#total)} ${this.#unit}`)
  }

  get #tenths(): number {
    return Math.floor(((this.passed + this.failed) * LINES) / this.#total)
  }

  #print(line: string): void {
    if (this.#campaign.runsAll) console.log(line)
  }
}

function formatted(count: number): string {
  return count.toLocaleString('en-US')
}
