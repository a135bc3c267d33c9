import { lossyTextOf, utf8 } from '../../../src/model/bytes.ts'

/** Writes numbers and texts to memory that it uses again and again. */
export class FieldWriter {
  #bytes = new Uint8Array(4_096)
  #length = 0

  #isComplete = true

  /**
   * Returns what was written since the last call: valid until something is written. Undefined if a number was
   * not one that can be written.
   */
  take(): Uint8Array | undefined {
    const taken = this.#isComplete ? this.#bytes.subarray(0, this.#length) : undefined
    this.#length = 0
    this.#isComplete = true
    return taken
  }

  /** Writes a whole number from 0 to 2^53 - 1. */
  number(value: number): void {
    if (!Number.isSafeInteger(value) || value < 0) {
      this.#isComplete = false
      return
    }
    this.#makeRoom(8)
    let rest = value
    for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) this.#bytes[this.#length++] = (rest % 0x80) | 0x80
    this.#bytes[this.#length++] = rest
  }

  /** Writes a whole number of either sign, the shorter the closer it is to 0. */
  signed(value: number): void {
    this.number(value < 0 ? -2 * value - 1 : 2 * value)
  }

  text(value: string): void {
    this.data(utf8(value))
  }

  /** Writes bytes and their length. */
  data(value: Uint8Array): void {
    this.number(value.length)
    this.raw(value)
  }

  /** Writes bytes alone. */
  raw(value: Uint8Array): void {
    this.#makeRoom(value.length)
    this.#bytes.set(value, this.#length)
    this.#length += value.length
  }

  #makeRoom(bytes: number): void {
    if (this.#length + bytes <= this.#bytes.length) return
    const wider = new Uint8Array(2 * (this.#length + bytes))
    wider.set(this.#bytes)
    this.#bytes = wider
  }
}

/** Reads what a {@link FieldWriter} wrote. */
export class FieldReader {
  readonly #bytes: Uint8Array
  #at = 0

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes
  }

  get isAtEnd(): boolean {
    return this.#at === this.#bytes.length
  }

  number(): number {
    let value = 0
    for (let unit = 1; ; unit *= 0x80) {
      const byte = this.#bytes[this.#at++]!
      if (byte < 0x80) return value + byte * unit
      value += (byte - 0x80) * unit
    }
  }

  signed(): number {
    const value = this.number()
    return value % 2 === 0 ? value / 2 : -(value + 1) / 2
  }

  text(): string {
    return lossyTextOf(this.data())
  }

  /** A view. */
  data(): Uint8Array {
    return this.raw(this.number())
  }

  /** The next bytes: a view. */
  raw(length: number): Uint8Array {
    this.#at += length
    return this.#bytes.subarray(this.#at - length, this.#at)
  }
}
