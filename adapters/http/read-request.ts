import { resumeQuery } from '../../src/core/read-resume.ts'
import type { ReadQuery, Stream } from '../../src/index.ts'
import { HeadwaterError } from '../../src/model/errors.ts'
import { type DataFormat, parseDataFormat } from '../../src/wire/data-format.ts'
import { readForm } from '../../src/wire/media-type.ts'
import { decodeReadQuery } from '../../src/wire/query.ts'
import { parseLastEventId } from '../../src/wire/sse.ts'
import { wordOfRequest } from '../../src/wire/vendor-headers.ts'
import { encryptionKey } from './encryption-key.ts'
import type { RequestContext } from './request-context.ts'

export interface ReadRequest {
  readonly stream: Stream
  readonly query: ReadQuery
  readonly form: 'session' | 'event-stream' | 'protobuf' | 'json'
  readonly format: DataFormat
}

/** Takes a read request apart; the first thing that is wrong, in the order of wire-behaviour.md 1.4, is the error. */
export function readRequest(context: RequestContext): ReadRequest {
  const basin = context.basinAddress()
  const name = context.pathParameter('stream')
  const query = wellFormedQuery(context.search)
  const stream = context.stream(basin, name, encryptionKey(context))
  const form = readForm(context.header('content-type'), context.header('accept'), context.settings.words)
  const format =
    form === 'session'
      ? 'raw'
      : parseDataFormat(context.vendorHeader('format'), context.vendorHeaderName('format'))
  const lastEventId = form === 'event-stream' ? context.header('last-event-id') : null
  const delivered = lastEventId === null ? undefined : parseLastEventId(lastEventId)
  const meant = query()
  return { stream, query: delivered === undefined ? meant : resumeQuery(meant, delivered), form, format }
}

/** Throws what is malformed at once. What has no meaning comes after malformed headers: it is thrown by the function returned. */
function wellFormedQuery(search: string): () => ReadQuery {
  try {
    const query = decodeReadQuery(search)
    return () => query
  } catch (error) {
    if (!HeadwaterError.is(error) || error.code !== 'invalid') throw error
    return () => {
      throw error
    }
  }
}

/** Whether the request really used the word whose clients count on an empty session at the tail (rulings.md "Reading"). */
export function emptyAtTail(context: RequestContext): boolean {
  return context.word === 's2' && wordOfRequest(context.request.headers, ['s2', 'svc']) === 's2'
}
