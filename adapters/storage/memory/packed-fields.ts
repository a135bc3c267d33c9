import { lossyTextOf, utf8 } from '../../../src/model/bytes.ts'

/** Writes numbers and texts to memory that it uses again and again. */
export class FieldWriter {
  #bytes = new Uint8Array(4_096)
  #length = 0

  /** Returns what was written since the last call: valid until something is written. */
  take(): Uint8Array {
    const taken = this.#bytes.subarray(0, this.#length)
    this.#length = 0
    return taken
  }

  /** Writes a whole number from 0 to 2^53 - 1. */
  number(value: number): void {
    this.#makeRoom(8)
    let rest = value
    for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) this.#bytes[this.#length++] = (rest % 0x80) | 0x80
    this.#bytes[this.#length++] = rest
  }

  text(value: string): void {
    const bytes = utf8(value)
    this.number(bytes.length)
    this.raw(bytes)
  }

  /** Writes bytes without their length. */
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

  number(): number {
    let value = 0
    for (let unit = 1; ; unit *= 0x80) {
      const byte = this.#bytes[this.#at++]!
      if (byte < 0x80) return value + byte * unit
      value += (byte - 0x80) * unit
    }
  }

  text(): string {
    return lossyTextOf(this.raw(this.number()))
  }

  /** The next bytes: a view. */
  raw(length: number): Uint8Array {
    this.#at += length
    return this.#bytes.subarray(this.#at - length, this.#at)
  }
}
