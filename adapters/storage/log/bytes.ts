/** Appends numbers and strings to a growing buffer that is reused. */
export class ByteWriter {
  #buffer: Buffer
  #length = 0

  constructor(capacity = 4096) {
    this.#buffer = Buffer.allocUnsafe(capacity)
  }

  get length(): number {
    return this.#length
  }

  /** The bytes written so far: a view, valid until the next write. */
  get bytes(): Buffer {
    return this.#buffer.subarray(0, this.#length)
  }

  /** Discards everything written from `length` on. */
  truncate(length: number): void {
    this.#length = length
  }

  /** Reserves bytes that are filled in later. */
  skip(count: number): void {
    this.#reserve(count)
    this.#length += count
  }

  byte(value: number): void {
    this.#reserve(1)
    this.#buffer[this.#length++] = value
  }

  u32(value: number): void {
    this.#reserve(4)
    this.#length = this.#buffer.writeUInt32LE(value, this.#length)
  }

  varint(value: number): void {
    if (!Number.isSafeInteger(value) || value < 0) {
      throw new RangeError(`${value} cannot be stored: it must be an integer from 0 to 2^53 - 1`)
    }
    this.#varint(value)
  }

  /** Writes a time; null stands for never. */
  optional(value: number | null): void {
    if (value === null) this.byte(0)
    else if (value === Number.MAX_SAFE_INTEGER) this.#varint(2 ** 53)
    else this.varint(value + 1)
  }

  string(text: string): void {
    // Most fencing tokens are empty: not worth two calls into native code.
    if (text === '') {
      this.byte(0)
      return
    }
    const length = Buffer.byteLength(text)
    this.varint(length)
    this.#reserve(length)
    this.#length += this.#buffer.write(text, this.#length, 'utf8')
  }

  raw(bytes: Uint8Array): void {
    this.#reserve(bytes.length)
    this.#buffer.set(bytes, this.#length)
    this.#length += bytes.length
  }

  #varint(value: number): void {
    this.#reserve(8)
    let rest = value
    for (; rest >= 0x1000_0000; rest = Math.floor(rest / 128)) {
      this.#buffer[this.#length++] = (rest % 128) | 0x80
    }
    for (; rest >= 0x80; rest >>>= 7) this.#buffer[this.#length++] = (rest & 0x7f) | 0x80
    this.#buffer[this.#length++] = rest
  }

  #reserve(count: number): void {
    const needed = this.#length + count
    if (needed <= this.#buffer.length) return
    const larger = Buffer.allocUnsafe(Math.max(needed, 2 * this.#buffer.length))
    this.#buffer.copy(larger, 0, 0, this.#length)
    this.#buffer = larger
  }
}

/** Reads what {@link ByteWriter} wrote. Throws `RangeError` if the input is truncated or malformed. */
export class ByteReader {
  readonly #buffer: Buffer
  readonly #end: number
  offset: number

  constructor(buffer: Buffer, offset = 0, end = buffer.length) {
    this.#buffer = buffer
    this.offset = offset
    this.#end = end
  }

  get left(): number {
    return this.#end - this.offset
  }

  byte(): number {
    if (this.offset >= this.#end) throw new RangeError('truncated')
    return this.#buffer[this.offset++]!
  }

  u32(): number {
    this.#take(4)
    return this.#buffer.readUInt32LE(this.offset - 4)
  }

  varint(): number {
    const value = this.#varint()
    if (value > Number.MAX_SAFE_INTEGER) throw new RangeError('a number is beyond 2^53 - 1')
    return value
  }

  /** Reads a number that is stored as its distance from `base`. */
  varintAfter(base: number): number {
    const value = base + this.varint()
    if (value > Number.MAX_SAFE_INTEGER) throw new RangeError('a number is beyond 2^53 - 1')
    return value
  }

  optional(): number | null {
    const value = this.#varint()
    if (value > 2 ** 53) throw new RangeError('a number is beyond 2^53 - 1')
    return value === 0 ? null : value - 1
  }

  string(): string {
    const length = this.varint()
    if (length === 0) return ''
    this.#take(length)
    return this.#buffer.toString('utf8', this.offset - length, this.offset)
  }

  skip(count: number): void {
    this.#take(count)
  }

  skipString(): void {
    this.#take(this.varint())
  }

  /** Reads `length` bytes: a view. */
  raw(length: number): Buffer {
    this.#take(length)
    return this.#buffer.subarray(this.offset - length, this.offset)
  }

  #varint(): number {
    let value = 0
    for (let scale = 1; scale <= 2 ** 49; scale *= 128) {
      // Not by a call of its own: an opening and a list decode numbers before the compiler has seen them.
      if (this.offset >= this.#end) throw new RangeError('truncated')
      const byte = this.#buffer[this.offset++]!
      value += (byte & 0x7f) * scale
      if (byte < 0x80) return value
    }
    throw new RangeError('a number is beyond 2^53 - 1')
  }

  #take(count: number): void {
    if (count > this.left) throw new RangeError('truncated')
    this.offset += count
  }
}
