import type { ClientHttp2Stream } from 'node:http2'
import { type CallOptions, signalOf } from '../../src/api/call-options.ts'
import { utf8 } from '../../src/model/bytes.ts'
import type { StreamConfigInput } from '../../src/model/config.ts'
import type { EncryptionKey } from '../../src/model/encryption-key.ts'
import { assertValid } from '../../src/model/errors.ts'
import { basinNameProblem, streamNameProblem } from '../../src/model/names.ts'
import { assertText, type Members } from '../../src/model/validation.ts'
import type { SharedSignal } from '../../src/runtime/abort.ts'
import type { VendorHeader } from '../../src/wire/headers.ts'
import type { Exchange, IncomingResponse } from './transport.ts'

/** A request of the protocol. */
export interface Call {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** The encoded path after `/v1`, with the query. */
  readonly path: string
  readonly basin?: string | undefined
  /** The protocol headers, without their prefix. */
  readonly vendor?:
    | Partial<Record<VendorHeader, string | EncryptionKey | StreamConfigInput | undefined>>
    | undefined
  /** Headers that have no prefix. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  readonly accept?: string | undefined
  readonly contentType?: string | undefined
  readonly body?: Uint8Array | undefined
  /** Whether closing the client waits for it for a while. False by default. */
  readonly isAppend?: boolean | undefined
  /** Whether the call may be sent again although an earlier attempt may have had effects. */
  readonly isRepeatable: boolean
  /** How long the server may wait before it responds, in milliseconds. */
  readonly waitMs?: number | undefined
  readonly signal?: AbortSignal | undefined
}

/** A successful response. */
export interface Reply {
  /** Returns the value of a header, by its name in lower case. */
  header(name: string): string | undefined
  readonly body: Uint8Array
}

/** A request for a session. */
export interface SessionCall extends Call {
  /** The media type of the response. */
  readonly mediaType: string
  /** Receives the stream of each attempt to open an append session, whose body it writes. */
  readonly upload?: ((stream: ClientHttp2Stream) => void) | undefined
}

/** The response to a session request, whose body has not been read. */
export interface OpenSession {
  readonly response: IncomingResponse
  readonly exchange: Exchange
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

/**
 * Begins a call about the account, a basin or a stream. Returns its signal. Throws if its names or options
 * are invalid, and if the signal has aborted or the client closes.
 */
export function begin(
  { closing }: { readonly closing: SharedSignal },
  options: CallOptions | undefined,
  names: readonly [] | readonly [basin: string] | readonly [basin: string, stream: string] = [],
  members?: Members,
): AbortSignal | undefined {
  for (const [i, name] of names.entries()) assertText(name, i === 0 ? 'basin' : 'stream')
  const signal = signalOf(options, members)
  signal?.throwIfAborted()
  closing.throwIfAborted()
  if (names.length === 2) assertValid(streamNameProblem(names[1]), 'stream')
  if (names.length > 0) assertValid(basinNameProblem(names[0]!), 'basin')
  return signal
}
