import { ERROR_KINDS, type ErrorCode, type ErrorDetails, HeadwaterError } from '../model/errors.ts'
import {
  camelCase,
  type JsonObject,
  Malformed,
  objectForm,
  objectOf,
  parseJson,
  safeIntegerOf,
  snakeCase,
  stringOf,
} from './json.ts'
import { positionOf, tailJson } from './json-records.ts'

/** Bodies of errors, at both ends of the protocol (docs/protocol.md "Error bodies"). */

/** An error on the wire: a response, a terminal frame or an SSE `error` event. */
export interface ErrorBody {
  readonly status: number
  /** JSON text without line breaks. */
  readonly text: string
}

/**
 * The status and JSON text of an error. 412 and 416 have bodies of their own, without a code. An error that
 * is not a {@link HeadwaterError} is a defect: it becomes 500 `other`, and its message stays private.
 */
export function errorBody(error: unknown): ErrorBody {
  if (!HeadwaterError.is(error)) return { status: 500, text: codeAndMessage('other', 'internal error') }
  const code = WIRE_CODES[error.code] ?? error.code
  return {
    status: error.status,
    text: bareShape(error) ?? codeAndMessage(code, wireMessage(error), detailsForm(error)),
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
  storage_upgraded: 'unavailable',
  stream_deleted: 'unavailable',
  undecodable_record: 'bad_json',
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
const DETAILS = objectForm<ExtensionDetails>({
  seqNum: safeIntegerOf,
  producerEpoch: safeIntegerOf,
  expectedSeq: safeIntegerOf,
  receivedSeq: safeIntegerOf,
  lastSeq: safeIntegerOf,
  streamSeq: stringOf,
})

type ExtensionDetails = Pick<
  ErrorDetails,
  'seqNum' | 'producerEpoch' | 'expectedSeq' | 'receivedSeq' | 'lastSeq' | 'streamSeq'
>

function detailsForm(error: HeadwaterError): object {
  // Other errors with a sequence number tell it in their message.
  const seqNum = error.code === 'stream_closed' ? error.seqNum : undefined
  return DETAILS.write({ ...error, seqNum }, undefined)
}

function codeAndMessage(code: string, message: string, details: object = {}): string {
  return JSON.stringify({ code, message, ...details })
}

/** The content of an error response, with the field names of the API. */
export interface ReceivedError extends ErrorDetails {
  /** Undefined if the body has no code of the protocol. */
  readonly code: ErrorCode | undefined
  readonly sentCode: string
  readonly message: string
}

/** Decodes the body of an error. Returns undefined if it has another form. */
export function decodeError(text: string): ReceivedError | undefined {
  try {
    return errorOf(objectOf(parseJson(text), 'error'))
  } catch (error) {
    if (error instanceof Malformed) return undefined
    throw error
  }
}

function errorOf(body: JsonObject): ReceivedError {
  if (body.seq_num_mismatch !== undefined) {
    const seqNum = safeIntegerOf(body.seq_num_mismatch, 'seq_num_mismatch')
    const message = `the next sequence number is ${seqNum}`
    return { ...own('seq_num_mismatch', message), field: 'matchSeqNum', seqNum }
  }
  if (body.fencing_token_mismatch !== undefined) {
    const fencingToken = stringOf(body.fencing_token_mismatch, 'fencing_token_mismatch')
    const message = 'the stream has another fencing token'
    return { ...own('fencing_token_mismatch', message), field: 'fencingToken', fencingToken }
  }
  // A batch of records has its tail too.
  if (body.tail !== undefined && body.code === undefined && body.records === undefined) {
    const message = 'no record is available at the requested start'
    return { ...own('range_not_satisfiable', message), tail: positionOf(body.tail) }
  }
  const sentCode = cleaned(stringOf(body.code, 'code'))
  const code = Object.hasOwn(ERROR_KINDS, sentCode) ? (sentCode as ErrorCode) : undefined
  const text = cleaned(stringOf(body.message ?? '', 'message'))
  const { message, field = (code && FIELDS[code]) ?? MESSAGE_FIELDS.get(text) } = withApiFields(text)
  return { code, sentCode, message, ...(field !== undefined && { field }), ...DETAILS.of(body) }
}

function own(code: ErrorCode, message: string) {
  return { code, sentCode: code as string, message }
}

/** The fields of errors whose messages do not name them. */
const FIELDS: Partial<Record<ErrorCode, string>> = {
  already_appended: 'producer',
  producer_fenced: 'producer',
  producer_gap: 'producer',
  too_many_producers: 'producer',
  stream_seq_not_increasing: 'streamSeq',
}

/** The fields of messages of the protocol that do not name them. */
const MESSAGE_FIELDS: ReadonlyMap<string, string> = new Map([
  ['record timestamp was required but was missing', 'timestamp'],
  ['Access token permissions cannot be empty', 'scope'],
])

/** The longest message that is taken over from a server, in UTF-16 code units. */
const MESSAGE_LENGTH_MAX = 1_000
/** Control characters could change what a terminal shows of a log. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters to remove
const CONTROL = /[\u0000-\u001f\u007f-\u009f]+/g

function cleaned(text: string): string {
  const short = text.length > MESSAGE_LENGTH_MAX ? `${text.slice(0, MESSAGE_LENGTH_MAX)}…` : text
  return short.replace(CONTROL, ' ')
}

/** The fields of one word that messages name. Others are known by their underscore. */
const WORDS = [
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

/** The names on the wire that are not those of the API in snake case. */
const WIRE_FIELDS: Readonly<Record<string, string>> = {
  'deleteOnEmpty.minAgeSeconds': 'delete_on_empty.min_age_secs',
  encryptionKey: 'encryption-key',
  requestToken: 'request-token',
  'retentionPolicy.ageSeconds': 'retention_policy.age',
  waitMs: 'wait',
}

/** The wire's name of a field, as `match_seq_num` of `matchSeqNum`. Options of the server stay. */
function wireFieldOf(field: string): string {
  return field.startsWith('limits.') ? field : (WIRE_FIELDS[field] ?? snakeCase(field))
}

/** The name in the API of a field on the wire; undefined for anything else. */
function apiFieldOf(wireField: string): string | undefined {
  const renamed = Object.keys(WIRE_FIELDS).find((field) => WIRE_FIELDS[field] === wireField)
  if (renamed !== undefined || WORDS.includes(wireField)) return renamed ?? wireField
  return wireField.includes('_') ? camelCase(wireField) : undefined
}

/** The message of an error with the wire's name of its field. Messages quote the field in backticks. */
function wireMessage({ message, field }: HeadwaterError): string {
  return field === undefined ? message : message.replaceAll(`\`${field}\``, `\`${wireFieldOf(field)}\``)
}

function withApiFields(wireText: string): { readonly message: string; readonly field: string | undefined } {
  let field: string | undefined
  const message = wireText.replace(/`([\w.-]+)`/g, (_, name: string) => {
    const apiName = apiFieldOf(name)
    field ??= apiName
    return `\`${apiName ?? name}\``
  })
  return { message, field }
}
