import { READ_RECORDS_MAX } from '../model/limits.ts'
import type { Header, SequencedRecord } from '../model/record.ts'
import { decodeBase64 } from './base64.ts'
import { positionOf, type ReceivedBatch, tooManyRecords, withCommand } from './decode-records.ts'
import { integerOfJson, MalformedResponse, type ResponseObject, recordOf } from './response-json.ts'
import { responseArrayOf, textOfJson, unlessNull } from './response-members.ts'

/** One Server-Sent Event. */
export interface ServerEvent {
  /** `message` if the stream names none. */
  readonly event: string
  readonly data: string
}

/** The longest event, in UTF-16 code units: far above a batch of 1 MiB in base64. */
const EVENT_LENGTH_MAX = 16 * 1024 * 1024

/**
 * Parses Server-Sent Events from chunks of text. Throws {@link MalformedResponse} for one that is too long.
 */
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
    if (this.#length > EVENT_LENGTH_MAX) throw new MalformedResponse('an event is too long')
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

/** Decodes the JSON form of a batch whose strings are base64. Throws {@link MalformedResponse}. */
export function decodeReadBatchJson(value: unknown): ReceivedBatch {
  const batch = recordOf(value, 'batch')
  const records = responseArrayOf(batch.records, 'records')
  if (records.length > READ_RECORDS_MAX) throw tooManyRecords()
  return {
    records: records.map((record) => recordOfJson(recordOf(record, 'record'))),
    tail: unlessNull(batch.tail, positionOf),
  }
}

function recordOfJson({ seq_num, timestamp, headers, body }: ResponseObject): SequencedRecord {
  return withCommand(
    integerOfJson(seq_num, 'seq_num'),
    integerOfJson(timestamp, 'timestamp'),
    responseArrayOf(headers ?? [], 'headers').map((header): Header => {
      const [name, value] = responseArrayOf(header, 'headers')
      return [base64Of(name, 'headers'), base64Of(value, 'headers')]
    }),
    base64Of(body ?? '', 'body'),
  )
}

function base64Of(value: unknown, name: string): Uint8Array {
  const bytes = decodeBase64(textOfJson(value, name))
  if (bytes === undefined) throw new MalformedResponse(`\`${name}\` is not base64`)
  return bytes
}
