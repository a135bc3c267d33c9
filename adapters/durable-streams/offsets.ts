import { INTEGER_MAX } from '../../src/model/limits.ts'
import { DurableStreamsError } from './durable-streams-error.ts'

/**
 * An offset is the sequence number of the next record, in a fixed number of digits so that offsets sort as
 * text, and a second number, which this server sends as zero and ignores: clients that compute offsets (such
 * as the Yjs server of the protocol's makers) add to it.
 */
const DIGITS = 16
const SUFFIX = `_${'0'.repeat(DIGITS)}`
const PATTERN = /^(\d{16})_\d{16}$/

/** The start of a read: a sequence number, the first remaining record, or the tail. */
export type StartOffset = number | 'beginning' | 'now'

export function offsetOf(seqNum: number): string {
  return String(seqNum).padStart(DIGITS, '0') + SUFFIX
}

/** Parses an offset in the form of {@link offsetOf}. Throws 400. */
export function parseOffset(text: string, name: string): number {
  const [, seqNum] = PATTERN.exec(text) ?? []
  if (seqNum === undefined) throw new DurableStreamsError(400, `\`${name}\` is not an offset of this server`)
  const position = Number(seqNum)
  if (position > INTEGER_MAX) {
    throw new DurableStreamsError(400, `\`${name}\` is beyond the end of every stream`)
  }
  return position
}

/** Parses the start of a read. Throws 400. */
export function parseStart(text: string): StartOffset {
  if (text === '-1') return 'beginning'
  return text === 'now' ? 'now' : parseOffset(text, 'offset')
}
