import type { StreamPosition } from './position.ts'

interface ErrorKind {
  /** HTTP status that carries the error on the wire. */
  readonly status: number
  /** Whether the same call may succeed when it is made again. */
  readonly retryable: boolean
  /** Whether the failed call may have had an effect (an append may be stored although it failed). */
  readonly mayHaveEffects: boolean
}

const final = (status: number): ErrorKind => ({ status, retryable: false, mayHaveEffects: false })
const retry = (status: number): ErrorKind => ({ status, retryable: true, mayHaveEffects: false })
const unknown = (status: number): ErrorKind => ({ status, retryable: true, mayHaveEffects: true })

/** Every error code, as in wire-behaviour.md 2.2. The last three are 412 and 416, which have no code on the wire. */
export const ERROR_KINDS = {
  access_token_not_found: final(404),
  authn: final(401),
  bad_frame: final(400),
  bad_header: final(400),
  bad_json: final(400),
  bad_path: final(400),
  bad_proto: final(400),
  bad_query: final(400),
  basin_deletion_pending: final(409),
  basin_not_found: final(404),
  decryption_failed: final(400),
  hot_server: retry(502),
  invalid: final(422),
  not_implemented: final(501),
  other: unknown(500),
  permission_denied: final(403),
  quota_exhausted: final(403),
  rate_limited: retry(429),
  request_timeout: unknown(408),
  resource_already_exists: final(409),
  server_draining: retry(503),
  storage: unknown(500),
  stream_deletion_pending: final(409),
  stream_not_found: final(404),
  transaction_conflict: retry(409),
  unavailable: unknown(503),
  upstream_timeout: unknown(504),
  fencing_token_mismatch: final(412),
  seq_num_mismatch: final(412),
  range_not_satisfiable: final(416),
} as const satisfies Record<string, ErrorKind>

export type ErrorCode = keyof typeof ERROR_KINDS

export interface ErrorDetails {
  /** What was wrong with the input: the name of the member, parameter or header. */
  readonly field?: string
  /** `range_not_satisfiable`: the tail of the stream. */
  readonly tail?: StreamPosition
  /** `fencing_token_mismatch`: the token that the stream has, `''` when it has none. */
  readonly fencingToken?: string
  /** `seq_num_mismatch`: the sequence number that the next record would get. */
  readonly seqNum?: number
  /** Where more is known than the code tells. */
  readonly mayHaveEffects?: boolean
  readonly cause?: unknown
}

const BRAND = Symbol.for('headwater.error')

/**
 * The one error class of headwater. Branch on `code`. Check with `HeadwaterError.is(e)`, which holds across two copies of
 * the package, where `instanceof` does not.
 */
export class HeadwaterError extends Error {
  readonly code: ErrorCode
  readonly status: number
  readonly retryable: boolean
  readonly mayHaveEffects: boolean
  readonly field: string | undefined
  readonly tail: StreamPosition | undefined
  readonly fencingToken: string | undefined
  readonly seqNum: number | undefined

  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause })
    const kind: ErrorKind = ERROR_KINDS[code]
    this.name = 'HeadwaterError'
    this.code = code
    this.status = kind.status
    this.retryable = kind.retryable
    this.mayHaveEffects = details.mayHaveEffects ?? kind.mayHaveEffects
    this.field = details.field
    this.tail = details.tail
    this.fencingToken = details.fencingToken
    this.seqNum = details.seqNum
    Object.defineProperty(this, BRAND, { value: true })
  }

  static is(value: unknown): value is HeadwaterError {
    return typeof value === 'object' && value !== null && BRAND in value
  }
}

/** Input that decodes but means nothing (422). */
export function invalid(message: string, field?: string): HeadwaterError {
  return new HeadwaterError('invalid', message, field === undefined ? {} : { field })
}

/** Throws 422 `invalid` when there is a problem. */
export function refuse(problem: string | undefined, field: string): void {
  if (problem !== undefined) throw invalid(problem, field)
}
