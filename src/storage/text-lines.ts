import type { Lines } from '../model/append-input.ts'
import { type BlockMemory, UNBUFFERED_BYTES_MAX } from '../model/bytes.ts'
import type { StreamPosition } from '../model/position.ts'
import { RECORD_METERED_BYTES } from '../model/record.ts'
import { TAG_BODY, TAG_RECORD, TAG_SEQ_NUM, TAG_TIMESTAMP, varintSize, writeVarint } from './block-codec.ts'

/** Lines of a text in one array, each the body of a record. */
export class TextLines implements Lines {
  /** The text. */
  readonly bytes: Uint8Array
  /** The offset of the first line. */
  readonly start: number
  /** The end of each line, exclusive. The next line begins after one more byte, the line break. */
  readonly ends: Uint32Array

  constructor(bytes: Uint8Array, start: number, ends: Uint32Array) {
    this.bytes = bytes
    this.start = start
    this.ends = ends
  }

  get count(): number {
    return this.ends.length
  }

  get meteredBytes(): number {
    const breaks = Math.max(0, this.count - 1)
    return RECORD_METERED_BYTES * this.count + this.#length - breaks
  }

  bodies(): Uint8Array[] {
    return Array.from(this.ends, (end, index) =>
      this.bytes.subarray(index === 0 ? this.start : this.ends[index - 1]! + 1, end),
    )
  }

  copy(): TextLines {
    const { start } = this
    // Not `slice`, which would not copy a Node `Buffer`.
    const copy = new Uint8Array(this.bytes.subarray(start, start + this.#length))
    return new TextLines(
      copy,
      0,
      this.ends.map((end) => end - start),
    )
  }

  /** Encodes them as `encodeRecords` encodes the same records. */
  encode({ seqNum: firstSeqNum, timestamp }: StreamPosition, memory: BlockMemory): Uint8Array {
    const { bytes, start, ends } = this
    const timestampField = fieldOf(TAG_TIMESTAMP, timestamp)
    const sizes = new Uint32Array(ends.length)
    let length = 0
    for (let i = 0, from = start; i < ends.length; i++) {
      const bodyBytes = ends[i]! - from
      const seqNum = firstSeqNum + i
      let size = timestampField.length
      if (seqNum !== 0) size += 1 + varintSize(seqNum)
      if (bodyBytes > 0) size += 1 + varintSize(bodyBytes) + bodyBytes
      sizes[i] = size
      length += 1 + varintSize(size) + size
      from = ends[i]! + 1
    }
    const block = length <= UNBUFFERED_BYTES_MAX ? new Uint8Array(length) : memory.allocate(length)

    // The whole text goes to the end of the block, and from there each line to its place, which costs less
    // than a view of each line. Nothing is overwritten early: every record takes at least two bytes more than
    // its line, a line break only one, so that the place of a line is never after the line.
    const textStart = length - this.#length
    block.set(bytes.subarray(start, start + this.#length), textStart)
    const shift = textStart - start
    let offset = 0
    for (let i = 0, from = start; i < ends.length; i++) {
      const end = ends[i]!
      const seqNum = firstSeqNum + i
      block[offset++] = TAG_RECORD
      offset = writeVarint(block, offset, sizes[i]!)
      if (seqNum !== 0) {
        block[offset++] = TAG_SEQ_NUM
        offset = writeVarint(block, offset, seqNum)
      }
      for (let k = 0; k < timestampField.length; k++) block[offset++] = timestampField[k]!
      if (end > from) {
        block[offset++] = TAG_BODY
        offset = writeVarint(block, offset, end - from)
        block.copyWithin(offset, from + shift, end + shift)
        offset += end - from
      }
      from = end + 1
    }
    return block
  }

  /** The length of the lines from the first to the last, in bytes, with the line breaks between them. */
  get #length(): number {
    return this.count === 0 ? 0 : this.ends[this.count - 1]! - this.start
  }
}

function fieldOf(tag: number, value: number): Uint8Array {
  if (value === 0) return new Uint8Array(0)
  const field = new Uint8Array(1 + varintSize(value))
  field[0] = tag
  writeVarint(field, 1, value)
  return field
}
