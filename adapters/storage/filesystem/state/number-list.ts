/** A growing list of numbers, outside of the heap that a garbage collection visits. */
export class NumberList {
  #numbers: Float64Array<ArrayBuffer>
  #length = 0

  constructor(capacity = 64) {
    this.#numbers = new Float64Array(capacity)
  }

  get length(): number {
    return this.#length
  }

  push(number: number): void {
    if (this.#length === this.#numbers.length) {
      const larger = new Float64Array(2 * this.#length)
      larger.set(this.#numbers)
      this.#numbers = larger
    }
    this.#numbers[this.#length++] = number
  }

  /** The number at an index below the length. */
  at(index: number): number {
    return this.#numbers[index]!
  }
}
