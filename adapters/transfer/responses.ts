import { fromBinary } from '@bufbuild/protobuf'
import { HeadwaterError, type SequencedRecord, type StreamPosition } from '../../src/index.ts'
import { assertInteger } from '../../src/model/validation.ts'
import { decodeRecords } from '../../src/storage/block-codec.ts'
import { AppendAckSchema, ReadBatchSchema } from '../../src/wire/gen/records_pb.ts'
import {
  type Decoder,
  dateTimeOf,
  dateTimeText,
  integerOf,
  objectOf,
  optional,
  required,
  stringOf,
} from '../../src/wire/json-members.ts'
import type { JsonObject } from '../../src/wire/json-reader.ts'
import { readJson } from '../../src/wire/json-reader.ts'
import type { ServiceResponse } from './connection.ts'
import { TransferError } from './transfer-error.ts'

/** Limits the quoted length of a service's message. */
const MESSAGE_CHARACTERS_MAX = 1000

/** Decodes a JSON response. Like the other decoders, throws {@link TransferError} for an unexpected one. */
export function decodeJson<Value>(
  body: Uint8Array,
  about: string,
  decode: (object: JsonObject) => Value,
): Value {
  return decodeOrThrow(about, () => decode(objectOf(readJson(body), 'body')))
}

/** Converts an error response. */
export function errorOf(
  { status, body }: Pick<ServiceResponse, 'status' | 'body'>,
  about: string,
): TransferError {
  const error = errorBodyOf(body)
  if (error === undefined) return new TransferError(`${about}: unexpected response with status ${status}`)
  const { code, message } = error
  return new TransferError(`${about}: ${message} (${code})`, { code })
}

/** Returns undefined if the body is not an error with a code. */
export function errorBodyOf(
  body: Uint8Array,
): { readonly code: string; readonly message: string } | undefined {
  try {
    const error = objectOf(readJson(body), 'body')
    const [code, message] = [required(error, 'code', stringOf), required(error, 'message', stringOf)]
    return { code: truncate(code), message: truncate(message) }
  } catch (error) {
    if (HeadwaterError.is(error)) return undefined
    throw error
  }
}

/** Decodes the response of a tail check, or of a read without records (416). */
export function tailOf(body: Uint8Array, about: string): StreamPosition {
  return decodeJson(body, about, (answer) => {
    return positionOf(required(answer, 'tail', objectOf))
  })
}

export function positionOf(object: JsonObject): StreamPosition {
  const seqNum = required(object, 'seq_num', integerOf)
  const timestamp = required(object, 'timestamp', integerOf)
  assertInteger(seqNum, 'seq_num')
  assertInteger(timestamp, 'timestamp')
  return { seqNum, timestamp }
}

/** Normalizes a time of RFC 3339, so that equal times are equal strings. */
export const timeTextOf: Decoder<string> = (value, name) => dateTimeText(dateTimeOf(value, name))

/** Decodes a 412: the actual values of the conditions of an append. */
export function mismatchOf(
  body: Uint8Array,
  about: string,
): { readonly seqNum: number | undefined; readonly fencingToken: string | undefined } {
  return decodeJson(body, about, (answer) => ({
    seqNum: optional(answer, 'seq_num_mismatch', integerOf),
    fencingToken: optional(answer, 'fencing_token_mismatch', stringOf),
  }))
}

/** Decodes the records of a `ReadBatch` message. */
export function recordsOf(body: Uint8Array, about: string): readonly SequencedRecord[] {
  return decodeOrThrow(about, () => {
    try {
      return decodeRecords(body)
    } catch (error) {
      if (!(error instanceof RangeError)) throw error
      // The fast decoder rejects messages with a tail and those of other versions, which are rare.
      return fromBinary(ReadBatchSchema, body).records.map((record) => ({
        seqNum: exact(record.seqNum),
        timestamp: exact(record.timestamp),
        headers: record.headers.map(({ name, value }) => [name, value] as const),
        body: record.body,
      }))
    }
  })
}

/** Decodes the end position of an append. */
export function ackEndOf(body: Uint8Array, about: string): StreamPosition {
  return decodeOrThrow(about, () => {
    const { end } = fromBinary(AppendAckSchema, body)
    return { seqNum: exact(end?.seqNum ?? 0n), timestamp: exact(end?.timestamp ?? 0n) }
  })
}

function truncate(text: string): string {
  return text.length <= MESSAGE_CHARACTERS_MAX ? text : `${text.slice(0, MESSAGE_CHARACTERS_MAX)}…`
}

function exact(value: bigint): number {
  if (value > BigInt(Number.MAX_SAFE_INTEGER)) throw new RangeError('a number exceeds 2^53 - 1')
  return Number(value)
}

function decodeOrThrow<Value>(about: string, decode: () => Value): Value {
  try {
    return decode()
  } catch (cause) {
    throw new TransferError(`${about}: unexpected response: ${(cause as Error).message}`, {
      cause,
    })
  }
}
