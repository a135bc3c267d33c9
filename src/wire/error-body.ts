import { type ErrorCode, HeadwaterError } from '../model/errors.ts'
import { wireFieldOf } from './field-names.ts'
import { tailJson } from './json-records.ts'

/** An error on the wire: a response, a terminal frame or an SSE `error` event. */
export interface ErrorBody {
  /** The HTTP status. */
  readonly status: number
  /** JSON text without line breaks. */
  readonly text: string
}

/**
 * The status and JSON text of an error (docs/protocol.md "Error bodies"). 412 and 416 have bodies of their
 * own, without a code. An error that is not a {@link HeadwaterError} is a defect: it becomes 500 `other`, and
 * its message stays private.
 */
export function errorBody(error: unknown): ErrorBody {
  if (!HeadwaterError.is(error)) return { status: 500, text: codeAndMessage('other', 'internal error') }
  const code = WIRE_CODES[error.code] ?? error.code
  return {
    status: error.status,
    text: bareShape(error) ?? codeAndMessage(code, wireMessage(error), detailsOf(error)),
  }
}

/** Codes that the protocol does not distinguish, with the code that it has for them. */
const WIRE_CODES: { readonly [Code in ErrorCode]?: ErrorCode } = {
  append_discarded: 'other',
  closed: 'unavailable',
  encryption_key_invalid: 'bad_header',
  history_trimmed: 'other',
  reducer_failed: 'other',
  outbox_full: 'rate_limited',
  outcome_unknown: 'other',
  storage_full: 'storage',
  stream_deleted: 'unavailable',
  undecodable_record: 'bad_json',
  unsupported: 'unavailable',
}

function bareShape({ code, fencingToken, seqNum, tail }: HeadwaterError): string | undefined {
  if (code === 'fencing_token_mismatch' && fencingToken !== undefined) {
    return JSON.stringify({ fencing_token_mismatch: fencingToken })
  }
  if (code === 'seq_num_mismatch' && seqNum !== undefined) return JSON.stringify({ seq_num_mismatch: seqNum })
  if (code === 'range_not_satisfiable' && tail !== undefined) return tailJson(tail)
  return undefined
}

/** The details that only errors of headwater's extensions have. */
function detailsOf(error: HeadwaterError): object {
  return {
    seq_num: error.code === 'stream_closed' ? error.seqNum : undefined,
    producer_epoch: error.producerEpoch,
    expected_seq: error.expectedSeq,
    received_seq: error.receivedSeq,
    last_seq: error.lastSeq,
    stream_seq: error.streamSeq,
  }
}

function codeAndMessage(code: string, message: string, details: object = {}): string {
  return JSON.stringify({ code, message, ...details })
}

/** The message of an error with the wire's name of its field. Messages quote the field in backticks. */
function wireMessage({ message, field }: HeadwaterError): string {
  return field === undefined ? message : message.replaceAll(`\`${field}\``, `\`${wireFieldOf(field)}\``)
}
