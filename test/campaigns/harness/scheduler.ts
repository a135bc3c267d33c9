import { type VirtualClock, virtualClock } from '../../../adapters/testing/index.ts'
import { Prng } from '../../../src/runtime/random.ts'
import { Violation } from './violation.ts'

export interface PlayOptions {
  readonly seed: number
  readonly steps: number
  /** Receives each line of the history as it is added. */
  readonly onLine?: ((line: string) => void) | undefined
}

/** The outcome of a seed. */
export interface Played {
  readonly seed: number
  /** The number of steps made; fewer than requested if a violation was found. */
  readonly steps: number
  readonly settings: object
  readonly violation: Violation | undefined
  /** Found after the last step, while everything was brought to an end. */
  readonly isAtEnd: boolean
  /** Equal for equal seeds and numbers of steps. */
  readonly lines: readonly string[]
}

/** What a seed plays: how it begins, each step, how everything is brought to an end, and what is freed. */
export interface Scenario {
  begin(): Promise<void>
  step(step: number): Promise<void>
  end(steps: number): Promise<void>
  dispose(): Promise<void>
}

/** Decides everything that happens in a run: randomness, virtual time, and the history of what happened. */
export class Scheduler {
  readonly time: VirtualClock = virtualClock()
  readonly prng: Prng
  readonly lines: string[] = []
  readonly #onLine: PlayOptions['onLine']
  #step = 0
  #violation: Violation | undefined

  constructor({ seed, onLine }: PlayOptions) {
    this.prng = new Prng(seed)
    this.#onLine = onLine
  }

  /** The first promise that was found broken. */
  get violation(): Violation | undefined {
    return this.#violation
  }

  /** Adds a line to the history. */
  note(actor: string, event: string, details: Readonly<Record<string, unknown>> = {}): void {
    const line = JSON.stringify({ step: this.#step, at: this.time.now(), actor, event, ...details })
    this.lines.push(line)
    this.#onLine?.(line)
  }

  /** Performs one of the actions, each with the probability of its weight. */
  async choose(actions: readonly (readonly [weight: number, act: () => unknown])[]): Promise<void> {
    let left = this.prng.next() * actions.reduce((sum, [weight]) => sum + weight, 0)
    const chosen = actions.find(([weight]) => {
      left -= weight
      return left < 0
    })
    await chosen?.[1]()
  }

  /** Keeps the first violation. The run ends with the step that found it. */
  guard(check: () => void): void {
    try {
      check()
    } catch (error) {
      this.#keep(error)
    }
  }

  async guardAsync(check: () => Promise<void>): Promise<void> {
    try {
      await check()
    } catch (error) {
      this.#keep(error)
    }
  }

  /** Settles as `work` does, which may wait for virtual time. */
  async whileAdvancing<Result>(work: Promise<Result>): Promise<Result> {
    let isSettled = false
    const end = () => {
      isSettled = true
    }
    work.then(end, end)
    await this.time.settle()
    while (!isSettled) await this.time.advance(20)
    return work
  }

  async play(scenario: Scenario, { seed, steps }: PlayOptions, settings: object): Promise<Played> {
    await this.guardAsync(() => scenario.begin())
    while (this.#step < steps && this.#violation === undefined) {
      this.#step++
      await this.guardAsync(() => scenario.step(this.#step))
    }
    const isAtEnd = this.#violation === undefined
    if (isAtEnd) await this.guardAsync(() => scenario.end(steps))
    await scenario.dispose()
    return { seed, steps: this.#step, settings, violation: this.#violation, isAtEnd, lines: this.lines }
  }

  #keep(error: unknown): void {
    this.#violation ??=
      error instanceof Violation
        ? error
        : new Violation('no unexpected error', String((error as Error)?.stack))
  }
}
