import type { StreamTail } from './position.ts'

interface ErrorKind {
  readonly status: number
  readonly retryable: boolean
  /** Whether the failed call may have had an effect, as an append that is stored although it failed. */
  readonly mayHaveEffects: boolean
}

const final = (status: number): ErrorKind => ({ status, retryable: false, mayHaveEffects: false })
const retry = (status: number): ErrorKind => ({ status, retryable: true, mayHaveEffects: false })
const uncertain = (status: number): ErrorKind => ({ status, retryable: true, mayHaveEffects: true })

/** Every error code, with its cause and remedy (docs/protocol.md "Error codes"). */
export const ERROR_KINDS = {
  /** No access token has this id. List the tokens. */
  access_token_not_found: final(404),
  /**
   * The producer has appended this batch, and others since: `lastSeq` is the last one. Nothing was stored
   * again. Continue after `lastSeq`.
   */
  already_appended: final(409),
  /** An earlier append of the session failed: `cause`. This one was not made. Append it in a new session. */
  append_discarded: retry(500),
  /** The access token is missing, malformed, unknown, revoked or expired. Use a valid one. */
  authn: final(401),
  /** A session frame or its message is malformed. Correct the client. */
  bad_frame: final(400),
  /** A header of a request is missing, malformed or contradicts another. Correct the request. */
  bad_header: final(400),
  /** The JSON body of a request is malformed, has the wrong shape or is too long. Correct it. */
  bad_json: final(400),
  /** A name in the path is invalid. Correct the path. */
  bad_path: final(400),
  /** The protobuf body is malformed or too long. Correct the request. */
  bad_proto: final(400),
  /** A query parameter is malformed. Correct the query. */
  bad_query: final(400),
  /** The basin is being deleted. Wait until its deletion is complete. */
  basin_deletion_pending: final(409),
  /** The basin does not exist. Create it. */
  basin_not_found: final(404),
  /** The engine, storage, session or producer is closed. Open it again. */
  closed: final(503),
  /** A record could not be decrypted. Use the encryption key that it was appended with. */
  decryption_failed: final(400),
  /** The key of an encrypted stream is missing or malformed. Pass an `encryptionKey` of 32 bytes. */
  encryption_key_invalid: final(400),
  /**
   * Records were trimmed before a fold read them, and no snapshot covers them; `seqNum` is the first one
   * left. Store them again, or pass `trimmed: 'skip'` to begin with what is left.
   */
  history_trimmed: final(500),
  /** The input breaks a rule or a limit. Correct the member that `field` names. */
  invalid: final(422),
  /** An unexpected failure. Check the state before retrying, and see `cause`. */
  other: uncertain(500),
  /** The limit of an outbox is reached. Retry when records have been sent, or raise the limit. */
  outbox_full: retry(429),
  /**
   * Records of an outbox may be on the server or not, and the records that would tell were trimmed. Look the
   * records up, then retry or discard them.
   */
  outcome_unknown: { status: 500, retryable: false, mayHaveEffects: true },
  /** The access token does not permit the operation. Use a token with a wider scope. */
  permission_denied: final(403),
  /** The producer has a greater epoch: `producerEpoch`. Another instance of it has taken over. */
  producer_fenced: final(403),
  /** A batch of the producer before this one is missing: `expectedSeq`. Append that first. */
  producer_gap: final(409),
  /** A limit of the engine is reached. Retry later, or raise the limit that the message names. */
  rate_limited: retry(429),
  /** The reducer of a fold threw at the record `seqNum`: `cause`. Correct it, and raise `version`. */
  reducer_failed: final(500),
  /** A basin, stream or access token of this name exists. Choose another name. */
  resource_already_exists: final(409),
  /** The server is about to stop, and has not done what was asked. Connect again. */
  server_draining: retry(503),
  /** The storage failed or holds damaged data. Check the state before retrying, and see `cause`. */
  storage: uncertain(500),
  /** The disk is full or the storage quota is exceeded. Free space, then retry. */
  storage_full: uncertain(500),
  /** A newer version of headwater has upgraded the storage. Reload the page, or update the program. */
  storage_upgraded: final(503),
  /** The stream is closed; `seqNum` is its tail. Append to another stream. */
  stream_closed: final(409),
  /** The stream of an open read was deleted. Create it again if it is still needed. */
  stream_deleted: final(503),
  /** The stream was deleted during an append. Create it again if it is still needed. */
  stream_deletion_pending: final(409),
  /** The stream does not exist. Create it. */
  stream_not_found: final(404),
  /** The stream has this `streamSeq` or a greater one: `streamSeq`. Use a greater one. */
  stream_seq_not_increasing: final(409),
  /** The stream knows 1,000 producers, all active within 7 days. Use fewer ids, or another stream. */
  too_many_producers: final(409),
  /** Concurrent changes of the same stream or configuration came first. Retry. */
  transaction_conflict: retry(409),
  /** A server cannot be reached, or cannot serve the request now. Retry. */
  unavailable: uncertain(503),
  /** `stream.json()`: a record is not JSON or does not match the schema. Skip it: `seqNum` is its number. */
  undecodable_record: final(400),
  /** The engine does not meter usage, or the runtime lacks something. See the message. */
  unsupported: final(503),
  /** The stream has another fencing token: `fencingToken`. Another writer has taken over. */
  fencing_token_mismatch: final(412),
  /** The next record would get another number: `seqNum`. Read the records before it, then decide again. */
  seq_num_mismatch: final(412),
  /** The stream has no record at the start of the read; `tail` is its end. Read later, or with `waitMs`. */
  range_not_satisfiable: final(416),
} as const satisfies Record<string, ErrorKind>

/** The code of an error: what callers branch on. */
export type ErrorCode = keyof typeof ERROR_KINDS

/** The members of an error that its code does not determine. */
export interface ErrorDetails extends Partial<Omit<HeadwaterError, 'code' | keyof ErrorKind | keyof Error>> {
  /** Replaces the default of the code where more is known. */
  readonly mayHaveEffects?: boolean | undefined
  readonly cause?: unknown
}

const BRAND = Symbol.for('headwater.error')

/**
 * The one error class of headwater. Branch on `code`. Check with `HeadwaterError.is(error)`, which works
 * across two copies of the package, unlike `instanceof`.
 */
export class HeadwaterError extends Error {
  /** Identifies the error; stable across versions, unlike the message. */
  readonly code: ErrorCode
  /** HTTP status of a response that reports the error. */
  readonly status: number
  /** Whether the same call may succeed later. */
  readonly retryable: boolean
  /** Whether the failed call may have had an effect. If false, nothing was stored or changed. */
  readonly mayHaveEffects: boolean
  /**
   * The invalid field, parameter or header; undefined if no single one is at fault. In-process errors use the
   * name of the API: `matchSeqNum`.
   */
  declare readonly field: string | undefined
  /** `range_not_satisfiable`: the tail of the stream. */
  declare readonly tail: StreamTail | undefined
  /** `fencing_token_mismatch`: the token of the stream, `''` if it has none. */
  declare readonly fencingToken: string | undefined
  /**
   * `seq_num_mismatch`: the sequence number that the next record would get. `undecodable_record` and
   * `reducer_failed`: that of the record. `history_trimmed`: that of the first record left.
   * `stream_closed`: the tail.
   */
  declare readonly seqNum: number | undefined
  /** `producer_fenced`: the epoch of the producer. */
  declare readonly producerEpoch: number | undefined
  /** `producer_gap`: the number of the batch that has to come next. */
  declare readonly expectedSeq: number | undefined
  /** `producer_gap`: the number of the batch that was rejected. */
  declare readonly receivedSeq: number | undefined
  /** `already_appended`: the number of the last batch of the producer. */
  declare readonly lastSeq: number | undefined
  /** `stream_seq_not_increasing`: that of the last append that had one. */
  declare readonly streamSeq: string | undefined
  /** How long a server asks to wait before the next attempt, in milliseconds; undefined if it does not. */
  declare readonly retryAfterMs: number | undefined

  /** Creates an error whose status and flags follow from its code. */
  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}) {
    const { cause, ...others } = details
    super(message, cause === undefined ? undefined : { cause })
    const { status, retryable, mayHaveEffects } = ERROR_KINDS[code]
    this.name = 'HeadwaterError'
    this.code = code
    this.status = status
    this.retryable = retryable
    this.mayHaveEffects = mayHaveEffects
    // Only those that are given: members without a value would fill the logs.
    Object.assign(this, others)
    Object.defineProperty(this, BRAND, { value: true })
  }

  /** Whether a value is a `HeadwaterError`, from this or another copy of the package. */
  static is(value: unknown): value is HeadwaterError {
    return typeof value === 'object' && value !== null && BRAND in value
  }
}

/** An `invalid` error. The message quotes the field in backticks. */
export function invalid(message: string, field?: string): HeadwaterError {
  return new HeadwaterError('invalid', message, field === undefined ? {} : { field })
}

/** Throws `invalid` if there is a problem: what a function named `…Problem` returns. */
export function assertValid(problem: string | undefined, field: string): void {
  if (problem !== undefined) throw invalid(problem, field)
}

/** Whether the error says that the basin or the stream does not exist. */
export function isStreamMissing(error: unknown): error is HeadwaterError {
  return HeadwaterError.is(error) && (error.code === 'stream_not_found' || error.code === 'basin_not_found')
}
