import type { DeliveredSoFar } from '../core/read-resume.ts'
import { HeadwaterError, invalid } from '../model/errors.ts'
import { INTEGER_MAX } from '../model/limits.ts'

/**
 * Events of a read as Server-Sent Events (service-interface.md "Events", wire-behaviour.md 5.8). Fields come in the order `event`, `id`,
 * `data`; each event ends with a blank line.
 */

/** The text that follows the last event of a session that ended well. */
export const DONE_EVENT = 'data: [DONE]\n\n'

/** The id tells what this connection has delivered so far, this batch included. `batchJson` is the JSON text of the read batch, in the format of the request. */
export function batchEvent(delivered: DeliveredSoFar, batchJson: string): string {
  return `event: batch\nid: ${delivered.lastSeqNum},${delivered.count},${delivered.bytes}\n${dataField(batchJson)}\n`
}

/** The heartbeat. `pingJson` is the JSON text of time and tail. */
export function pingEvent(pingJson: string): string {
  return `event: ping\n${dataField(pingJson)}\n`
}

/** `bodyText` is the JSON text of the body that the same error would have as a response. Nothing may follow it. */
export function errorEvent(bodyText: string): string {
  return `event: error\n${dataField(bodyText)}\n`
}

/**
 * JSON texts are one line. Any other text is given as one field a line, as the format demands: it would otherwise end the event, and
 * what follows would be read as fields. U+2028 and U+2029 do not end lines here.
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
 * Reads a `Last-Event-ID` header. Throws `bad_header` unless it is three unsigned 64-bit numbers; 422 `invalid` when its sequence
 * number is beyond 2^53 - 1, the limit of start positions. The other two saturate there.
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

const UNSIGNED_64_MAX = 2n ** 64n - 1n

/** Rounded above 2^53 - 1: good for comparing with that limit only. */
function unsigned64(digits: string): number {
  const significant = digits.replace(/^0+(?=[0-9])/, '')
  // Twenty digits hold every 64-bit number; longer ones are refused before a big number is made of them.
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
