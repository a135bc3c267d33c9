import type { ClientHttp2Stream } from 'node:http2'
import { utf8 } from '../../src/model/bytes.ts'
import type { StreamConfigInput } from '../../src/model/config.ts'
import type { RedactedKey } from '../../src/model/encryption-key.ts'
import type { HeadwaterError } from '../../src/model/errors.ts'
import type { SharedSignal } from '../../src/runtime/abort.ts'
import type { VendorHeader } from '../../src/wire/headers.ts'
import type { Exchange, IncomingResponse } from './exchange.ts'
import type { Settings } from './options.ts'

/** Receives the stream on which the body of a request is written while the response arrives. */
export type Upload = (stream: ClientHttp2Stream) => void

/** A request of the protocol. */
export interface Call {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** The encoded path after `/v1`, with the query. */
  readonly path: string
  readonly basin?: string | undefined
  /** The protocol headers, without their prefix. */
  readonly vendor?:
    | Partial<Record<VendorHeader, string | RedactedKey | StreamConfigInput | undefined>>
    | undefined
  /** Headers that have no prefix. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  readonly accept?: string | undefined
  readonly contentType?: string | undefined
  readonly body?: Uint8Array | undefined
  /** Receives the stream of each attempt to open an append session, whose body it writes. */
  readonly upload?: Upload | undefined
  /** Whether closing the client waits for it for a while. False by default. */
  readonly isAppend?: boolean | undefined
  /** Whether the call may be sent again although an earlier attempt may have had effects. */
  readonly isRepeatable: boolean
  /** How long the server may wait before it responds, in milliseconds. */
  readonly waitMs?: number | undefined
  readonly signal?: AbortSignal | undefined
}

/** A successful response. */
export interface CallReply {
  readonly headers: Pick<Headers, 'get'>
  readonly body: Uint8Array
  /** Whether an earlier attempt of the same call may have had effects. */
  readonly isRepeated: boolean
}

/** The outcome of a call. */
export type Outcome =
  | ({ readonly kind: 'reply' } & CallReply)
  | {
      readonly kind: 'failed'
      readonly error: HeadwaterError
      /** Whether an attempt before the last one may have had effects. */
      readonly isRepeated: boolean
    }

/** The response to a session request, whose body has not been read. */
export interface OpenResponse {
  readonly response: IncomingResponse
  readonly exchange: Exchange
}

/** Sends calls, and repeats those that are safe to repeat. */
export interface CallSender {
  readonly settings: Pick<Settings, 'keepsForever'>
  /** Aborts when the client is closed. */
  readonly closing: SharedSignal
  /** Resolves to a successful response. Rejects with what the last attempt failed with. */
  send(call: Call): Promise<CallReply>
  /** Sends a call and decodes the JSON of the response. */
  json<Value>(call: Call, decode: (value: unknown, reply: CallReply) => Value): Promise<Value>
}

interface JsonCallOptions extends Pick<Call, 'basin' | 'vendor' | 'signal'> {
  readonly text?: string | undefined
  /** True by default, which is right for calls that change nothing. */
  readonly isRepeatable?: boolean | undefined
}

/** A call whose body and response are JSON. */
export function jsonCall(
  method: Call['method'],
  path: string,
  { text, isRepeatable = true, ...others }: JsonCallOptions,
): Call {
  const body = text === undefined ? {} : { body: utf8(text), contentType: 'application/json' }
  return { method, path, isRepeatable, ...others, ...body }
}
