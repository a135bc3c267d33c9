import { type ErrorCode, HeadwaterError } from '../model/errors.ts'
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

/** The names on the wire of the fields of the API that have another name there. */
const WIRE_FIELDS: Readonly<Record<string, string>> = {
  autoPrefixStreams: 'auto_prefix_streams',
  createStreamOnAppend: 'create_stream_on_append',
  createStreamOnRead: 'create_stream_on_read',
  'deleteOnEmpty.minAgeSeconds': 'delete_on_empty.min_age_secs',
  encryptionKey: 'encryption-key',
  expiresAt: 'expires_at',
  fencingToken: 'fencing_token',
  matchSeqNum: 'match_seq_num',
  requestToken: 'request-token',
  'retentionPolicy.ageSeconds': 'retention_policy.age',
  'scope.accessTokens': 'scope.access_tokens',
  seqNum: 'seq_num',
  startAfter: 'start_after',
  storageClass: 'storage_class',
  streamSeq: 'stream_seq',
  streamCipher: 'stream_cipher',
  tailOffset: 'tail_offset',
  waitMs: 'wait',
}

/** Fields of the API that are named in messages and have the same name on the wire. */
const SAME_FIELDS = [
  'basin',
  'body',
  'end',
  'headers',
  'id',
  'prefix',
  'producer',
  'records',
  'set',
  'start',
  'stream',
]

/**
 * The name on the wire of a field of the API, as `match_seq_num` of `matchSeqNum`. Options of the server stay
 * as they are.
 */
export function wireFieldOf(field: string): string {
  if (field.startsWith('limits.')) return field
  return WIRE_FIELDS[field] ?? field.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}

/** The name in the API of a field on the wire; undefined for anything else. */
export function apiFieldOf(wireField: string): string | undefined {
  for (const field in WIRE_FIELDS) if (WIRE_FIELDS[field] === wireField) return field
  return SAME_FIELDS.find((field) => field === wireField)
}
