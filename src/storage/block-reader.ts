/** Tags of the fields: see `block-codec.ts`. */
export const TAG_RECORD = (1 << 3) | 2
export const TAG_SEQ_NUM = 1 << 3
export const TAG_TIMESTAMP = 2 << 3
export const TAG_HEADER = (3 << 3) | 2
export const TAG_BODY = (4 << 3) | 2
export const TAG_NAME = (1 << 3) | 2
export const TAG_VALUE = (2 << 3) | 2

/** Reads the fields of a block one after another. Throws `RangeError` when they are cut short. */
export class BlockReader {
  offset = 0
  readonly #data: Uint8Array

  constructor(data: Uint8Array) {
    this.#data = data
  }

  byte(): number {
    const byte = this.#data[this.offset++]
    if (byte === undefined) throw new RangeError('not a block: cut short')
    return byte
  }

  varint(): number {
    let value = 0
    let scale = 1
    for (let i = 0; i < 8; i++) {
      const byte = this.byte()
      value += (byte & 0x7f) * scale
      if (byte < 0x80) {
        if (value > Number.MAX_SAFE_INTEGER) break
        return value
      }
      scale *= 128
    }
    throw new RangeError('not a block: number beyond 2^53 - 1')
  }

  /** Reads a length and returns where what it measures ends. */
  end(): number {
    const end = this.varint() + this.offset
    if (end > this.#data.length) throw new RangeError('not a block: cut short')
    return end
  }

  /** A view. */
  bytes(): Uint8Array {
    const end = this.end()
    const bytes = this.#data.subarray(this.offset, end)
    this.offset = end
    return bytes
  }

  /** Passes over what {@link bytes} would give, and returns its length. */
  skipBytes(): number {
    const end = this.end()
    const length = end - this.offset
    this.offset = end
    return length
  }
}
