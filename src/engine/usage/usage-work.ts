import { macrotask } from '../macrotask.ts'
import type { MetricsService } from '../services.ts'
import { RollUp } from './roll-up.ts'
import { Sampling } from './sampling.ts'
import type { UsageEngine } from './usage-flush.ts'
import { UsageMetrics } from './usage-metrics.ts'

/** What of the usage metrics is not needed by each append and read; loaded when it is first needed. */
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
      rollUp: () => this.#finish(this.#rollUp),
      sample: () => this.#finish(this.#sampling),
    })
  }

  /** A bounded step; resolves to whether more is left. */
  async maintain(): Promise<boolean> {
    return (await this.#step(this.#rollUp)) || this.#step(this.#sampling)
  }

  async #finish(work: RollUp | Sampling): Promise<void> {
    while (await this.#step(work)) await macrotask()
  }

  #step(work: RollUp | Sampling): Promise<boolean> {
    const step = this.#last.then(() => work.step())
    this.#last = step.catch(() => {})
    return step
  }
}
