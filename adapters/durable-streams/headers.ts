import { INTEGER_MAX } from '../../src/model/limits.ts'
import type { RequestExchange } from '../http/exchange.ts'

/** A rejection of the protocol that no error of the engine has. */
export class DurableStreamsError extends Error {
  readonly status: number
  readonly headers: Readonly<Record<string, string>> | undefined

  constructor(status: number, message: string, headers?: Readonly<Record<string, string>>) {
    super(message)
    this.status = status
    this.headers = headers
  }
}

const INTEGER = /^(0|[1-9]\d{0,15})$/

/** Parses a header that is an integer, in decimal digits without leading zeros. Throws 400. */
export function headerIntegerOf(text: string, name: string): number {
  const value = INTEGER.test(text) ? Number(text) : Number.NaN
  if (Number.isSafeInteger(value)) return value
  throw new DurableStreamsError(400, `\`${name}\` must be an integer from 0 to 2^53 - 1`)
}

/** Whether a request closes its stream. */
export function isClosing(exchange: RequestExchange): boolean {
  return exchange.header('stream-closed')?.trim().toLowerCase() === 'true'
}

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

/** The intervals of cursors begin on 9 October 2024, 00:00 UTC, as the protocol says. */
const EPOCH_MS = Date.UTC(2024, 9, 9)
const INTERVAL_MS = 20_000
/** The most intervals by which a repeated cursor is advanced: an hour. */
const JITTER_MAX = 180

/**
 * Returns a function that generates the cursors of one response. A cursor is the number of the current
 * interval, so that the requests of many clients have the same URL. It is greater than the cursor that the
 * client sent, so that a cache does not return the same response forever. `random` is in [0, 1).
 */
export function cursorsOf(sent: string | null, now: number, random: () => number): (now: number) => string {
  const known = sent !== null && /^\d{1,15}$/.test(sent) ? Number(sent) : -1
  const least = known < intervalOf(now) ? 0 : known + 1 + Math.floor(random() * JITTER_MAX)
  return (at) => String(Math.max(intervalOf(at), least))
}

function intervalOf(now: number): number {
  return Math.max(0, Math.floor((now - EPOCH_MS) / INTERVAL_MS))
}
