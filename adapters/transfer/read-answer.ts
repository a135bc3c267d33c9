import { fromBinary } from '@bufbuild/protobuf'
import { HeadwaterError, type SequencedRecord, type StreamPosition } from '../../src/index.ts'
import { checkInteger } from '../../src/model/integers.ts'
import { decodeRecords } from '../../src/storage/block-codec.ts'
import { dateTimeOf, dateTimeText } from '../../src/wire/date-time.ts'
import { AppendAckSchema, ReadBatchSchema } from '../../src/wire/gen/records_pb.ts'
import {
  type Decoder,
  integerOf,
  objectOf,
  optional,
  required,
  stringOf,
} from '../../src/wire/json-members.ts'
import { readJson } from '../../src/wire/json-reader.ts'
import type { JsonObject } from '../../src/wire/json-values.ts'
import type { Answer } from './connection.ts'
import { TransferError } from './transfer-error.ts'

/** More of a service's message is not repeated. */
const MESSAGE_CHARACTERS_MAX = 1000

/** What answers of a service say. All throw {@link TransferError}, naming what they were about, for what is no such answer. */
export function jsonOf<Value>(body: Uint8Array, about: string, decode: (object: JsonObject) => Value): Value {
  return understood(about, () => decode(objectOf(readJson(body), 'body')))
}

/** The error that a service answered with. */
export function refusal({ status, body }: Pick<Answer, 'status' | 'body'>, about: string): TransferError {
  const error = codeOf(body)
  if (error === undefined) return new TransferError(`${about}: the service answered with status ${status}`)
  const { code, message } = error
  return new TransferError(`${about}: ${message} (${code})`, { code })
}

/** Undefined where the answer is no error with a code. */
export function codeOf(body: Uint8Array): { readonly code: string; readonly message: string } | undefined {
  try {
    const error = objectOf(readJson(body), 'body')
    const [code, message] = [required(error, 'code', stringOf), required(error, 'message', stringOf)]
    return { code: cut(code), message: cut(message) }
  } catch (error) {
    if (HeadwaterError.is(error)) return undefined
    throw error
  }
}

/** The answer to a tail check, and that of a read without records (416). */
export function tailOf(body: Uint8Array, about: string): StreamPosition {
  return jsonOf(body, about, (answer) => {
    return positionOf(required(answer, 'tail', objectOf))
  })
}

export function positionOf(object: JsonObject): StreamPosition {
  const seqNum = required(object, 'seq_num', integerOf)
  const timestamp = required(object, 'timestamp', integerOf)
  checkInteger(seqNum, 'seq_num')
  checkInteger(timestamp, 'timestamp')
  return { seqNum, timestamp }
}

/** A time of RFC 3339, written as this program writes times: those that are the same are the same text. */
export const timeTextOf: Decoder<string> = (value, name) => dateTimeText(dateTimeOf(value, name))

/** A 412: which condition of an append did not hold, and what would have. */
export function mismatchOf(
  body: Uint8Array,
  about: string,
): { readonly seqNum: number | undefined; readonly fencingToken: string | undefined } {
  return jsonOf(body, about, (answer) => ({
    seqNum: optional(answer, 'seq_num_mismatch', integerOf),
    fencingToken: optional(answer, 'fencing_token_mismatch', stringOf),
  }))
}

/** The records of a `ReadBatch` message. */
export function recordsOf(body: Uint8Array, about: string): readonly SequencedRecord[] {
  return understood(about, () => {
    try {
      return decodeRecords(body)
    } catch (error) {
      if (!(error instanceof RangeError)) throw error
      // A message with a tail, or of another version: rare, and read without haste.
      return fromBinary(ReadBatchSchema, body).records.map((record) => ({
        seqNum: exact(record.seqNum),
        timestamp: exact(record.timestamp),
        headers: record.headers.map(({ name, value }) => [name, value] as const),
        body: record.body,
      }))
    }
  })
}

/** Where an append ended. */
export function ackEndOf(body: Uint8Array, about: string): StreamPosition {
  return understood(about, () => {
    const { end } = fromBinary(AppendAckSchema, body)
    return { seqNum: exact(end?.seqNum ?? 0n), timestamp: exact(end?.timestamp ?? 0n) }
  })
}

function cut(text: string): string {
  return text.length <= MESSAGE_CHARACTERS_MAX ? text : `${text.slice(0, MESSAGE_CHARACTERS_MAX)}…`
}

function exact(value: bigint): number {
  if (value > BigInt(Number.MAX_SAFE_INTEGER)) throw new RangeError('a number is beyond 2^53 - 1')
  return Number(value)
}

function understood<Value>(about: string, decode: () => Value): Value {
  try {
    return decode()
  } catch (cause) {
    throw new TransferError(
      `${about}: the service gave an answer that is none: ${(cause as Error).message}`,
      {
        cause,
      },
    )
  }
}
