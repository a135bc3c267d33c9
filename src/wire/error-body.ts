import { HeadwaterError } from '../model/errors.ts'
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
  // The protocol has no separate code for a full storage.
  const code = error.code === 'storage_full' ? 'storage' : error.code
  return { status: error.status, text: bareShape(error) ?? codeAndMessage(code, wireMessage(error)) }
}

function bareShape({ code, fencingToken, seqNum, tail }: HeadwaterError): string | undefined {
  if (code === 'fencing_token_mismatch' && fencingToken !== undefined) {
    return JSON.stringify({ fencing_token_mismatch: fencingToken })
  }
  if (code === 'seq_num_mismatch' && seqNum !== undefined) return JSON.stringify({ seq_num_mismatch: seqNum })
  if (code === 'range_not_satisfiable' && tail !== undefined) return tailJson(tail)
  return undefined
}

function codeAndMessage(code: string, message: string): string {
  return JSON.stringify({ code, message })
}

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
  streamCipher: 'stream_cipher',
  tailOffset: 'tail_offset',
  waitSeconds: 'wait',
}

/**
 * The name on the wire of a field of the API, as `match_seq_num` of `matchSeqNum`. Other names stay as they
 * are.
 */
function wireFieldOf(field: string): string {
  return WIRE_FIELDS[field] ?? field
}

/** The message of an error with the wire's name of its field. Messages quote the field in backticks. */
function wireMessage({ message, field }: HeadwaterError): string {
  return field === undefined ? message : message.replaceAll(`\`${field}\``, `\`${wireFieldOf(field)}\``)
}
