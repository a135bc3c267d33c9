import { HeadwaterError, invalid } from '../model/errors.ts'
import { INTEGER_MAX } from '../model/limits.ts'
import type { ReadQuery } from '../model/read-query.ts'

/**
 * Events of a read as Server-Sent Events (docs/protocol.md "Server-Sent Events"). Fields come in the order
 * `event`, `id`, `data`; each event ends with a blank line.
 */

/** The text after the last event of a session that ended without an error. */
export const DONE_EVENT = 'data: [DONE]\n\n'

/**
 * The event of a batch. Its id states what the connection has delivered, including this batch. `batchJson` is
 * the JSON text of the batch.
 */
export function batchEvent(delivered: DeliveredSoFar, batchJson: string): string {
  return `event: batch\nid: ${delivered.lastSeqNum},${delivered.count},${delivered.bytes}\n${dataField(batchJson)}\n`
}

/** The event of a heartbeat. `pingJson` is the JSON text of time and tail. */
export function pingEvent(pingJson: string): string {
  return `event: ping\n${dataField(pingJson)}\n`
}

/** The last event of a session that failed. `bodyText` is the JSON text of the error's body. */
export function errorEvent(bodyText: string): string {
  return `event: error\n${dataField(bodyText)}\n`
}

/**
 * Writes text with line breaks as one field per line: otherwise it would end the event, and the rest would be
 * read as fields. U+2028 and U+2029 are not line breaks in SSE.
 */
function dataField(text: string): string {
  if (!/[\r\n]/.test(text)) return `data: ${text}\n`
  return text
    .split(/\r\n|\r|\n/)
    .map((line) => `data: ${line}\n`)
    .join('')
}

const ID_PATTERN = /^([0-9]+),([0-9]+),([0-9]+)$/

/**
 * Parses a `Last-Event-ID` header. Throws `bad_header` unless it is three unsigned 64-bit numbers, and 422
 * `invalid` if its sequence number is beyond 2^53 - 1. The other two saturate.
 */
export function parseLastEventId(value: string): DeliveredSoFar {
  const match = ID_PATTERN.exec(value)
  if (match === null) throw badId()
  const lastSeqNum = unsigned64(match[1]!)
  if (lastSeqNum > INTEGER_MAX) {
    throw invalid(`the sequence number of Last-Event-ID must not exceed ${INTEGER_MAX}`, 'last-event-id')
  }
  return {
    lastSeqNum,
    count: Math.min(unsigned64(match[2]!), INTEGER_MAX),
    bytes: Math.min(unsigned64(match[3]!), INTEGER_MAX),
  }
}

/**
 * What the id of an event contains: its last sequence number, and what the connection had delivered with it.
 */
export interface DeliveredSoFar {
  readonly lastSeqNum: number
  readonly count: number
  readonly bytes: number
}

/** Continues a query after the last event that arrived: the start is replaced, the limits are reduced. */
export function resumeQuery(query: ReadQuery, delivered: DeliveredSoFar): ReadQuery {
  const { timestamp: _timestamp, tailOffset: _tailOffset, ...rest } = query
  return {
    ...rest,
    seqNum: Math.min(delivered.lastSeqNum + 1, Number.MAX_SAFE_INTEGER),
    count: query.count === undefined ? undefined : Math.max(0, query.count - delivered.count),
    bytes: query.bytes === undefined ? undefined : Math.max(0, query.bytes - delivered.bytes),
  }
}

const UNSIGNED_64_MAX = 2n ** 64n - 1n

/** A number that is rounded above 2^53 - 1, which is sufficient for comparing it with that limit. */
function unsigned64(digits: string): number {
  const significant = digits.replace(/^0+(?=[0-9])/, '')
  // Every 64-bit number has at most twenty digits. Longer ones are rejected before they become a large
  // BigInt.
  if (significant.length > 20 || BigInt(significant) > UNSIGNED_64_MAX) throw badId()
  return Number(significant)
}

function badId(): HeadwaterError {
  return new HeadwaterError(
    'bad_header',
    'Last-Event-ID must be three unsigned integers separated by commas',
    {
      field: 'last-event-id',
    },
  )
}
