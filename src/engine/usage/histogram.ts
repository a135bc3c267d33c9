/** How often values of each size were observed. */
export interface HistogramCounts {
  /** Upper bounds, ascending, each inclusive. */
  readonly bounds: readonly number[]
  /** One for each bound, and one for what lies beyond the last. */
  readonly counts: readonly number[]
  readonly sum: number
}

export class Histogram {
  readonly #bounds: readonly number[]
  readonly #counts: number[]
  #sum = 0

  constructor(bounds: readonly number[]) {
    this.#bounds = bounds
    this.#counts = new Array<number>(bounds.length + 1).fill(0)
  }

  observe(value: number): void {
    let bucket = 0
    while (bucket < this.#bounds.length && value > this.#bounds[bucket]!) bucket++
    this.#counts[bucket]!++
    this.#sum += value
  }

  get counts(): HistogramCounts {
    return { bounds: this.#bounds, counts: [...this.#counts], sum: this.#sum }
  }
}
