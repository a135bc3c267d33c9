import { macrotask } from '../macrotask.ts'
import type { MetricsService } from '../services.ts'
import { RollUp } from './roll-up.ts'
import { Sampling } from './sampling.ts'
import type { UsageEngine } from './usage-flush.ts'
import { UsageMetrics } from './usage-metrics.ts'

/** A bounded piece of work; resolves to whether more is left. */
type Step = () => Promise<boolean>

/** What is done with usage that is stored: it is told, and kept small. */
export class UsageWork {
  readonly metrics: MetricsService
  readonly #rollUp: RollUp
  readonly #sampling: Sampling
  /** Steps are made one after the other. */
  #last: Promise<unknown> = Promise.resolve()

  constructor(engine: UsageEngine, flush: () => Promise<void>) {
    this.#rollUp = new RollUp(engine)
    this.#sampling = new Sampling(engine)
    this.metrics = new UsageMetrics(engine, {
      flush,
      rollUp: () => this.#finish(() => this.#rollUp.step()),
      sample: () => this.#finish(() => this.#sampling.step(true)),
    })
  }

  /** A bounded step; resolves to whether more is left. */
  async maintain(): Promise<boolean> {
    return (await this.#make(() => this.#rollUp.step())) || this.#make(() => this.#sampling.step(false))
  }

  async #finish(step: Step): Promise<void> {
    while (await this.#make(step)) await macrotask()
  }

  #make(step: Step): Promise<boolean> {
    const made = this.#last.then(step)
    this.#last = made.catch(() => {})
    return made
  }
}
