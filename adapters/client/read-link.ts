import { HeadwaterError } from '../../src/model/errors.ts'
import type { ReadQuery } from '../../src/model/read-query.ts'
import type { SharedSignal } from '../../src/runtime/abort.ts'
import { FRAME_PAYLOAD_MAX, FrameDecoder, type MessageFrame } from '../../src/wire/frame.ts'
import { type HeaderPrefix, STREAM_ID_HEADER, sessionContentType } from '../../src/wire/headers.ts'
import { Malformed } from '../../src/wire/json.ts'
import { mediaTypeEssence } from '../../src/wire/media-type.ts'
import { decodeReadBatch } from '../../src/wire/protobuf.ts'
import { queryText, readQueryParts } from '../../src/wire/query.ts'
import type { Call, OpenResponse } from './call.ts'
import { decompressFrame } from './compressed-frames.ts'
import type { ClientCore, ReadForm } from './core.ts'
import { connectionFailure, emptyAt, type Failure, failureOf, unexpectedResponse } from './errors.ts'
import { events } from './event-stream.ts'
import { endOf, type LinkEvent, LinkFailure } from './link-event.ts'
import type { RemoteTarget } from './stream-target.ts'

/** One connection of a read session. */
export interface ReadLink {
  /** The identity of the stream, if the server sends one. */
  readonly streamId: string | undefined
  /**
   * Resolves to undefined at the end of the response. Rejects with {@link LinkFailure}, and with the reason
   * of a signal.
   */
  next(): Promise<LinkEvent | undefined>
  close(): void
}

/**
 * Opens a connection in the first form that the server accepts.
 *
 * @param streamId The identity that the stream must have, if it is known.
 */
export async function openLink(
  core: ClientCore,
  target: RemoteTarget,
  query: ReadQuery,
  signal: SharedSignal,
  streamId?: string | undefined,
): Promise<ReadLink | Failure> {
  const { readForms, sender, settings } = core
  const { waitMs } = query
  const isKnown = readForms.candidates.length === 1
  // A server that does not accept the form reads once, which must not take as long as the read may wait.
  const isProbe = !isKnown && waitMs !== 0 && readQueryParts(query, 'session').wait !== undefined
  const sentQuery = isProbe ? unbounded(query) : query
  let failure: Failure | undefined
  for (const form of [...readForms.candidates]) {
    const mediaType = mediaTypeOf(form, settings.headerPrefix)
    const opened = await sender.open(readCall(target, sentQuery, mediaType, streamId), signal)
    if ('error' in opened) {
      // A read that waits does not end for want of records, but one read does.
      const isOneRead = waitMs !== 0 && emptyAt(query, opened.error) !== undefined
      failure ??= opened
      if (isOneRead && !isKnown) continue
      return opened
    }
    const sent = mediaTypeEssence(opened.response.headers.get('content-type'))
    if (sent === mediaType) {
      readForms.candidates = [form]
      if (isProbe) {
        opened.exchange.end()
        return openLink(core, target, query, signal, streamId)
      }
      return new Link(opened, form === 'events' ? events(opened) : frames(opened, core), signal, core)
    }
    opened.exchange.end()
  }
  return (
    failure ?? {
      error: unexpectedResponse('it is not a read session; check `url`', false),
      isTransient: false,
      retryAfterMs: 0,
    }
  )
}

/** A read with the same start that follows without an end. */
function unbounded({ seqNum, timestamp, tailOffset, clamp }: ReadQuery): ReadQuery {
  return { seqNum, timestamp, tailOffset, clamp, waitMs: Number.POSITIVE_INFINITY }
}

const EVENT_STREAM = 'text/event-stream'

function mediaTypeOf(form: ReadForm, prefix: HeaderPrefix): string {
  return form === 'events' ? EVENT_STREAM : sessionContentType(prefix)
}

function readCall(
  { path, basin, recordHeaders }: RemoteTarget,
  query: ReadQuery,
  mediaType: string,
  streamId: string | undefined,
): Call {
  const common = {
    method: 'GET',
    path: `${path}/records${queryText(readQueryParts(query, 'session'))}`,
    basin,
    headers: streamId === undefined ? undefined : { [STREAM_ID_HEADER]: streamId },
    isRepeatable: true,
  } as const
  return mediaType === EVENT_STREAM
    ? { ...common, accept: mediaType, vendor: { ...recordHeaders, format: 'base64' } }
    : { ...common, accept: 'application/protobuf', contentType: mediaType, vendor: recordHeaders }
}

/** Reports failures of the events of a response. */
class Link implements ReadLink {
  readonly #opened: OpenResponse
  readonly #events: AsyncGenerator<LinkEvent, void, undefined>
  readonly #signal: SharedSignal
  readonly #core: ClientCore

  constructor(
    opened: OpenResponse,
    events: AsyncGenerator<LinkEvent, void, undefined>,
    signal: SharedSignal,
    core: ClientCore,
  ) {
    this.#opened = opened
    this.#events = events
    this.#signal = signal
    this.#core = core
  }

  get streamId(): string | undefined {
    return this.#opened.response.headers.get(STREAM_ID_HEADER) ?? undefined
  }

  async next(): Promise<LinkEvent | undefined> {
    try {
      const { done, value } = await this.#events.next()
      return done ? undefined : value
    } catch (error) {
      this.#signal.throwIfAborted()
      this.#core.closing.throwIfAborted()
      throw error instanceof LinkFailure ? error : new LinkFailure(failureOfLink(error))
    }
  }

  close(): void {
    this.#opened.exchange.end()
    this.#events.return().catch(() => {})
  }
}

function failureOfLink(error: unknown): Failure {
  const problem =
    error instanceof Malformed || (HeadwaterError.is(error) && error.code === 'bad_frame')
      ? error.message
      : undefined
  if (problem === undefined) return connectionFailure(error, false)
  return { error: unexpectedResponse(problem, false), isTransient: false, retryAfterMs: 0 }
}

async function* frames(
  { exchange, response }: OpenResponse,
  core: ClientCore,
): AsyncGenerator<LinkEvent, void, undefined> {
  const decoder = new FrameDecoder()
  for await (const chunk of exchange.chunks(response)) {
    for (const frame of decoder.decode(chunk)) {
      if (frame.kind === 'terminal') {
        throw new LinkFailure(endOf(failureOf(frame.status, frame.body, true)))
      }
      const received = decodeReadBatch(await messageOf(frame, core))
      yield { received, sentAt: undefined, advisesReconnect: frame.reconnectAdvised }
    }
  }
  if (decoder.isWithinFrame) throw new LinkFailure(connectionFailure(new Error('truncated response'), false))
}

async function messageOf(frame: MessageFrame, { readForms }: ClientCore): Promise<Uint8Array> {
  const { compression, payload } = frame
  if (compression === undefined) return payload
  const message = decompressFrame(compression, payload, FRAME_PAYLOAD_MAX)
  if (message !== undefined) return message
  // The server compresses with what `fetch` decodes, but a page cannot. Events are never compressed.
  readForms.candidates = ['events']
  throw new Error(`this runtime has no ${compression}`)
}
