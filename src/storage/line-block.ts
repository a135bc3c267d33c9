import type { SequencedLines } from '../core/sequence.ts'
import { UNBUFFERED_BYTES_MAX } from '../model/bytes.ts'
import { lengthOfLines } from '../model/lines.ts'
import { TAG_BODY, TAG_RECORD, TAG_SEQ_NUM, TAG_TIMESTAMP, varintSize, writeVarint } from './block-codec.ts'

/** Encodes lines as `encodeRecords` encodes the same records. */
export function encodeLines(
  { lines, seqNum: firstSeqNum, timestamp }: SequencedLines,
  allocate: (bytes: number) => Uint8Array,
): Uint8Array {
  const { bytes, start, ends } = lines
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
  const block = length <= UNBUFFERED_BYTES_MAX ? new Uint8Array(length) : allocate(length)

  // The whole text goes to the end of the block, and from there each line to its place, which costs less than
  // a view of each line. Nothing is overwritten early: every record takes at least two bytes more than its
  // line, a line break only one, so that the place of a line is never after the line.
  const textStart = length - lengthOfLines(lines)
  block.set(bytes.subarray(start, start + lengthOfLines(lines)), textStart)
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

function fieldOf(tag: number, value: number): Uint8Array {
  if (value === 0) return new Uint8Array(0)
  const field = new Uint8Array(1 + varintSize(value))
  field[0] = tag
  writeVarint(field, 1, value)
  return field
}
