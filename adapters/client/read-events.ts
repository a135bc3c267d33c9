import { deletedUnderReadError } from '../../src/api/read-session.ts'
import { trackExternalWork } from '../../src/runtime/clock.ts'
import type { ReceivedBatch } from '../../src/storage/record-batch.ts'
import { CompressedDataError } from '../../src/wire/codecs.ts'
import { platformCodec } from '../../src/wire/compression.ts'
import { FRAME_PAYLOAD_MAX, FrameDecoder, type MessageFrame } from '../../src/wire/frame.ts'
import { Malformed, objectOf, parseJson, safeIntegerOf } from '../../src/wire/json.ts'
import { positionOf, readBatchOf } from '../../src/wire/json-records.ts'
import { decodeReadBatch } from '../../src/wire/protobuf.ts'
import { EventParser, type ServerEvent } from '../../src/wire/sse.ts'
import type { OpenSession } from './call.ts'
import { connectionFailure, Failure, failureOf } from './errors.ts'

/** The media type of Server-Sent Events. */
export const EVENT_STREAM = 'text/event-stream'

/** A message to a read session: records, or a heartbeat without records. */
export interface SessionEvent {
  readonly received: ReceivedBatch
  /** The time of a heartbeat by the clock of the server, if it is known. */
  readonly sentAt?: number | undefined
}

/**
 * Yields the messages of a read session in frames. Throws {@link Failure} if it fails or is cut short, and
 * {@link Malformed}.
 */
export async function* framesOf({ exchange, response }: OpenSession): AsyncGenerator<SessionEvent, void> {
  const decoder = new FrameDecoder()
  for await (const chunk of exchange.chunks(response)) {
    for (const frame of decoder.decode(chunk)) {
      if (frame.kind === 'terminal') throw endOf(failureOf(frame.status, frame.body, true))
      yield { received: decodeReadBatch(await payloadOf(frame)) }
    }
  }
  if (decoder.isWithinFrame) throw truncated()
}

/**
 * The payload of a frame. Throws {@link Malformed} if it is damaged or too long, and if the runtime has no
 * such codec: there is none for zstd in browsers.
 */
export async function payloadOf({ compression, payload }: MessageFrame): Promise<Uint8Array> {
  if (compression === undefined) return payload
  const codec = platformCodec(compression)
  if (codec === undefined) {
    throw new Malformed(`a frame is compressed with ${compression}, which this runtime does not have`)
  }
  try {
    return await trackExternalWork(codec.decompress(payload, FRAME_PAYLOAD_MAX))
  } catch (error) {
    if (!(error instanceof CompressedDataError)) throw error
    throw new Malformed(`a compressed frame is invalid: ${error.message}`)
  }
}

/** Does the same as {@link framesOf} for Server-Sent Events. */
export async function* eventsOf({ exchange, response }: OpenSession): AsyncGenerator<SessionEvent, void> {
  const decoder = new TextDecoder()
  const parser = new EventParser()
  let isDone = false
  for await (const chunk of exchange.chunks(response)) {
    for (const event of parser.push(decoder.decode(chunk, { stream: true }))) {
      if (event.event === 'error') throw endOf(failureOf(undefined, event.data, true))
      const decoded = sessionEventOf(event)
      if (decoded === 'done') isDone = true
      else if (decoded !== undefined) yield decoded
    }
  }
  if (!isDone) throw truncated()
}

/** Undefined for an event of a later version. */
function sessionEventOf({ event, data }: ServerEvent): SessionEvent | 'done' | undefined {
  if (event === 'batch') return { received: readBatchOf(parseJson(data)) }
  if (event === 'ping') {
    const { timestamp, tail } = objectOf(parseJson(data), 'ping')
    return {
      received: { records: [], tail: positionOf(tail) },
      sentAt: safeIntegerOf(timestamp, 'timestamp'),
    }
  }
  return event === 'message' && data === '[DONE]' ? 'done' : undefined
}

function truncated(): Failure {
  return connectionFailure(new Error('truncated response'), true)
}

/** How a server ends a session whose stream is deleted: the protocol has no code for it. */
const DELETED = /stream was deleted/

/** The failure at the end of a session. */
function endOf(failure: Failure): Failure {
  const { code, message } = failure.error
  return code === 'unavailable' && DELETED.test(message) ? new Failure(deletedUnderReadError()) : failure
}
