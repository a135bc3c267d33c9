import { HeadwaterError, invalid } from '../model/errors.ts'
import { INTEGER_MAX } from '../model/limits.ts'
import type { ReadQuery } from '../model/read-query.ts'
import { Malformed } from './json.ts'

/**
 * Events of a read as Server-Sent Events (docs/protocol.md "Server-Sent Events"). Fields come in the order
 * `event`, `id`, `data`; each event ends with a blank line.
 */

/** The text after the last event of a session that ended without an error. */
export const DONE_EVENT = 'data: [DONE]\n\n'

/**
 * The event of a batch. Its id states what the connection has delivered, including this batch. `batchJson` is
 * the JSON text of the batch, in one line.
 */
export function batchEvent(delivered: DeliveredSoFar, batchJson: string): string {
  return `event: batch\nid: ${delivered.lastSeqNum},${delivered.count},${delivered.bytes}\ndata: ${batchJson}\n\n`
}

/**
 * A block that is no event: a client that reconnects begins at this sequence number. An `EventSource` keeps
 * its URL, whose start may mean another record by then, and a heartbeat has no id.
 */
export function startBlock(nextSeqNum: number): string {
  return `id: ${nextSeqNum - 1},0,0\n\n`
}

/** The event of a heartbeat. `pingJson` is the JSON text of time and tail, in one line. */
export function pingEvent(pingJson: string): string {
  return `event: ping\ndata: ${pingJson}\n\n`
}

/** The last event of a session that failed. `bodyText` is the JSON text of the error's body, in one line. */
export function errorEvent(bodyText: string): string {
  return `event: error\ndata: ${bodyText}\n\n`
}

/** The id of the block before the first record of a stream, which no other server of the protocol has. */
const START_OF_STREAM = '-1,0,0'
/** Captures the digits without leading zeros. Every 64-bit number has at most twenty. */
const ID_PATTERN = /^0*(\d{1,20}),0*(\d{1,20}),0*(\d{1,20})$/

/**
 * Parses a `Last-Event-ID` header. Throws `bad_header` unless it is three unsigned 64-bit numbers, or
 * `-1,0,0`, and 422 `invalid` if its sequence number is beyond 2^53 - 1. The other two saturate.
 */
export function parseLastEventId(value: string): DeliveredSoFar {
  if (value === START_OF_STREAM) return { lastSeqNum: -1, count: 0, bytes: 0 }
  const digits = ID_PATTERN.exec(value)?.slice(1)
  if (digits === undefined || digits.some((number) => BigInt(number) >= 2n ** 64n)) {
    throw new HeadwaterError('bad_header', 'Last-Event-ID must be three comma-separated integers', {
      field: 'last-event-id',
    })
  }
  // Rounded above 2^53 - 1, which is sufficient for comparing them with that limit.
  const [lastSeqNum, count, bytes] = digits.map(Number) as [number, number, number]
  if (lastSeqNum > INTEGER_MAX) {
    throw invalid(`the sequence number of Last-Event-ID must not exceed ${INTEGER_MAX}`, 'last-event-id')
  }
  return { lastSeqNum, count: Math.min(count, INTEGER_MAX), bytes: Math.min(bytes, INTEGER_MAX) }
}

/** The id of an event: its last sequence number, and the records and bytes delivered up to it. */
export interface DeliveredSoFar {
  /** -1 before the first record of the stream. */
  readonly lastSeqNum: number
  readonly count: number
  readonly bytes: number
}

/** Continues a query after the last event that arrived: the start is replaced, the limits are reduced. */
export function resumeQuery(query: ReadQuery, delivered: DeliveredSoFar): ReadQuery {
  return {
    ...query,
    timestamp: undefined,
    tailOffset: undefined,
    seqNum: Math.min(delivered.lastSeqNum + 1, Number.MAX_SAFE_INTEGER),
    count: query.count === undefined ? undefined : Math.max(0, query.count - delivered.count),
    bytes: query.bytes === undefined ? undefined : Math.max(0, query.bytes - delivered.bytes),
  }
}

export interface ServerEvent {
  /** `message` if the stream names none. */
  readonly event: string
  readonly data: string
}

/** The longest event, in UTF-16 code units: far above a batch of 1 MiB in base64. */
const EVENT_LENGTH_MAX = 16 * 1024 * 1024

/** Parses Server-Sent Events from chunks of text. Throws {@link Malformed} for one that is too long. */
export class EventParser {
  /** The parts of a line that has not ended: a line of a megabyte arrives in many chunks. */
  #line: string[] = []
  #length = 0
  #endsInReturn = false
  #event = ''
  #data: string[] = []

  /** Returns the events that end in this chunk. */
  push(chunk: string): ServerEvent[] {
    const events: ServerEvent[] = []
    // The second half of a line break whose first half ended the chunk before.
    const text = this.#endsInReturn && chunk.startsWith('\n') ? chunk.slice(1) : chunk
    if (chunk !== '') this.#endsInReturn = chunk.endsWith('\r')
    let start = 0
    for (const { index, 0: lineBreak } of text.matchAll(/\r\n|\r|\n/g)) {
      this.#keep(text.slice(start, index))
      const line = this.#line.join('')
      this.#line = []
      start = index + lineBreak.length
      if (line === '') this.#dispatch(events)
      else this.#field(line)
    }
    this.#keep(text.slice(start))
    return events
  }

  #keep(part: string): void {
    if (part === '') return
    this.#length += part.length
    if (this.#length > EVENT_LENGTH_MAX) throw new Malformed('an event is too long')
    this.#line.push(part)
  }

  #dispatch(events: ServerEvent[]): void {
    if (this.#data.length > 0) events.push({ event: this.#event || 'message', data: this.#data.join('\n') })
    this.#event = ''
    this.#data = []
    this.#length = 0
  }

  #field(line: string): void {
    const colon = line.indexOf(':')
    const name = colon === -1 ? line : line.slice(0, colon)
    const value = colon === -1 ? '' : line.slice(colon + 1).replace(/^ /, '')
    if (name === 'event') this.#event = value
    else if (name === 'data') this.#data.push(value)
  }
}
