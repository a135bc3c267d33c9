import { lossyTextOf, textOf } from '../model/bytes.ts'
import { isCommandShaped } from '../model/command.ts'
import { HeadwaterError } from '../model/errors.ts'
import type { SequencedRecord } from '../model/record.ts'
import { isPromise, type MaybePromise } from '../runtime/maybe-promise.ts'
import { issueText, type StandardResult } from './standard-schema.ts'

/** A record whose body is a JSON value. */
export interface JsonRecord<Value> {
  /** The position in the stream, from 0. */
  readonly seqNum: number
  /** Milliseconds since the Unix epoch unless the writer uses another unit. */
  readonly timestamp: number
  /** The headers in the order in which they were appended. */
  readonly headers: readonly (readonly [name: string, value: string])[]
  /** The value, as the schema returns it. */
  readonly value: Value
}

/** Rejects with `undecodable_record`. Commands are left out. */
export async function decodeJsonRecords<Value>(
  records: readonly SequencedRecord[],
  validate: (value: unknown) => MaybePromise<StandardResult<Value>>,
): Promise<JsonRecord<Value>[]> {
  const decoded: JsonRecord<Value>[] = []
  for (const { seqNum, timestamp, headers, body } of records) {
    if (isCommandShaped(headers)) continue
    const validated = validate(parsedBody(body, seqNum))
    const result = isPromise(validated) ? await validated : validated
    if (result.issues !== undefined) {
      throw undecodable(seqNum, `does not match the schema: ${issueText(result.issues)}`, result.issues)
    }
    decoded.push({
      seqNum,
      timestamp,
      headers: headers.map(([name, value]) => [lossyTextOf(name), lossyTextOf(value)] as const),
      value: result.value,
    })
  }
  return decoded
}

function parsedBody(body: Uint8Array, seqNum: number): unknown {
  const text = textOf(body)
  if (text === undefined) throw undecodable(seqNum, 'is not UTF-8')
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw undecodable(seqNum, 'is not JSON', cause)
  }
}

function undecodable(seqNum: number, problem: string, cause?: unknown): HeadwaterError {
  return new HeadwaterError('undecodable_record', `record ${seqNum} ${problem}`, { seqNum, cause })
}
