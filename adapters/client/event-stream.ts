import { objectOf, parseJson, safeIntegerOf } from '../../src/wire/json.ts'
import { positionOf, readBatchOf } from '../../src/wire/json-records.ts'
import { EventParser, type ServerEvent } from '../../src/wire/sse.ts'
import type { OpenResponse } from './call.ts'
import { connectionFailure, failureOf } from './errors.ts'
import { endOf, type LinkEvent, LinkFailure } from './link-event.ts'

/** Reads Server-Sent Events, for servers that do not send frames. */
export async function* events({
  exchange,
  response,
}: OpenResponse): AsyncGenerator<LinkEvent, void, undefined> {
  const decoder = new TextDecoder()
  const parser = new EventParser()
  let isDone = false
  for await (const chunk of exchange.chunks(response)) {
    for (const event of parser.push(decoder.decode(chunk, { stream: true }))) {
      if (event.event === 'error') throw new LinkFailure(endOf(failureOf(undefined, event.data, true)))
      const decoded = linkEventOf(event)
      if (decoded === 'done') isDone = true
      else if (decoded !== undefined) yield decoded
    }
  }
  if (!isDone) throw new LinkFailure(connectionFailure(new Error('truncated response'), false))
}

/** Undefined for an event of a later version. */
function linkEventOf({ event, data }: ServerEvent): LinkEvent | 'done' | undefined {
  if (event === 'batch') return { received: readBatchOf(parseJson(data)), sentAt: undefined }
  if (event === 'ping') {
    const { timestamp, tail } = objectOf(parseJson(data), 'ping')
    return {
      received: { records: [], tail: positionOf(tail) },
      sentAt: safeIntegerOf(timestamp, 'timestamp'),
    }
  }
  return event === 'message' && data === '[DONE]' ? 'done' : undefined
}
