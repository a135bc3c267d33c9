import type { StreamDescription } from '../../src/index.ts'
import { dateTimeOf } from '../../src/wire/json-members.ts'
import type { RequestExchange } from '../http/exchange.ts'
import { assertContentType } from './content.ts'
import { DurableStreamsError } from './durable-streams-error.ts'
import { headerIntegerOf, isClosing } from './header-values.ts'
import { parseOffset } from './offsets.ts'

/** The headers of a `PUT`. */
export interface CreateRequest {
  readonly contentType: string | undefined
  readonly expiry: StreamDescription['expiry']
  /** Whether the stream is closed after its first records. */
  readonly isClosed: boolean
  readonly fork: ForkRequest | undefined
}

/** A stream that begins as a copy of another one. */
export interface ForkRequest {
  /** The path of the source. */
  readonly path: string
  /** The sequence number after the last whole record; undefined is the tail. */
  readonly seqNum: number | undefined
  /** How many bytes or messages follow it. */
  readonly within: number
}

/** Parses the headers of a `PUT`. Throws 400. */
export function parseCreateRequest(exchange: RequestExchange): CreateRequest {
  const contentType = exchange.header('content-type')
  if (contentType !== undefined) assertContentType(contentType)
  return {
    contentType,
    expiry: expiryOf(exchange),
    isClosed: isClosing(exchange),
    fork: forkOf(exchange),
  }
}

function expiryOf(exchange: RequestExchange): CreateRequest['expiry'] {
  const ttl = exchange.header('stream-ttl')
  const at = exchange.header('stream-expires-at')
  if (ttl !== undefined && at !== undefined) {
    throw new DurableStreamsError(400, '`stream-ttl` and `stream-expires-at` exclude each other')
  }
  if (ttl !== undefined) return { idleSeconds: headerIntegerOf(ttl, 'stream-ttl') }
  return at === undefined ? undefined : { at: dateTimeOf(at, 'stream-expires-at').getTime() }
}

function forkOf(exchange: RequestExchange): ForkRequest | undefined {
  const path = exchange.header('stream-forked-from')
  const offset = exchange.header('stream-fork-offset')
  const sub = exchange.header('stream-fork-sub-offset')
  const within = sub === undefined ? 0 : headerIntegerOf(sub, 'stream-fork-sub-offset')
  if (path === undefined) {
    if (offset === undefined && sub === undefined) return undefined
    throw new DurableStreamsError(400, 'an offset of a fork requires `stream-forked-from`')
  }
  if (offset === undefined && within > 0) {
    throw new DurableStreamsError(400, '`stream-fork-sub-offset` requires `stream-fork-offset`')
  }
  const seqNum = offset === undefined ? undefined : parseOffset(offset, 'stream-fork-offset')
  return { path, seqNum, within }
}
