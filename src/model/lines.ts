import { RECORD_METERED_BYTES } from './record.ts'

/** Lines of a text in one array, each the body of a record: an append without an object for each record. */
export interface Lines {
  /** The text. */
  readonly bytes: Uint8Array
  /** Where the first line begins. */
  readonly start: number
  /** The end of each line, exclusive. The next line begins after one more byte, the line break. */
  readonly ends: Uint32Array
}

/** The length of the lines from the first to the last, in bytes, with the line breaks between them. */
export function lengthOfLines({ start, ends }: Lines): number {
  return ends.length === 0 ? 0 : ends[ends.length - 1]! - start
}

/** The metered size of the records, in bytes. */
export function meteredBytesOfLines(lines: Lines): number {
  const { length } = lines.ends
  const breaks = Math.max(0, length - 1)
  return RECORD_METERED_BYTES * length + lengthOfLines(lines) - breaks
}

/** The bytes of each line: views. */
export function bodiesOf({ bytes, start, ends }: Lines): Uint8Array[] {
  return Array.from(ends, (end, index) => bytes.subarray(index === 0 ? start : ends[index - 1]! + 1, end))
}

/** The same lines in memory of their own. */
export function copyLines(lines: Lines): Lines {
  const { bytes, start } = lines
  // Not `slice`, which would not copy a Node `Buffer`.
  const copy = new Uint8Array(bytes.subarray(start, start + lengthOfLines(lines)))
  return { bytes: copy, start: 0, ends: lines.ends.map((end) => end - start) }
}
