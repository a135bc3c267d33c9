import { ERROR_KINDS, type ErrorCode, type ErrorDetails } from '../model/errors.ts'
import { positionOf } from './decode-records.ts'
import { apiFieldOf } from './error-body.ts'
import { integerOfJson, MalformedResponse, parseResponse, recordOf } from './response-json.ts'
import { textOfJson } from './response-members.ts'

/** The longest message that is taken over from a server, in UTF-16 code units. */
const MESSAGE_LENGTH_MAX = 1_000
/** Control characters could change what a terminal shows of a log. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters to remove
const CONTROL = /[\u0000-\u001f\u007f-\u009f]+/g

/** The content of an error response, with the field names of the API. */
export interface ReceivedError extends ErrorDetails {
  /** Undefined if the body has no code of the protocol. */
  readonly code: ErrorCode | undefined
  /** The code as it was sent. */
  readonly sentCode: string
  readonly message: string
}

/**
 * Decodes the body of an error response, of a terminal frame or of an `error` event (docs/protocol.md "Error
 * bodies"). Returns undefined if it has another form.
 */
export function decodeError(text: string): ReceivedError | undefined {
  try {
    return errorOf(recordOf(parseResponse(text), 'error'))
  } catch (error) {
    if (error instanceof MalformedResponse) return undefined
    throw error
  }
}

/** The fields of errors whose messages do not name them. */
const FIELDS: Partial<Record<ErrorCode, string>> = {
  already_appended: 'producer',
  producer_fenced: 'producer',
  producer_gap: 'producer',
  too_many_producers: 'producer',
  stream_seq_not_increasing: 'streamSeq',
}

function errorOf(body: Readonly<Record<string, unknown>>): ReceivedError {
  if (body.seq_num_mismatch !== undefined) {
    const seqNum = integerOfJson(body.seq_num_mismatch, 'seq_num_mismatch')
    return {
      ...own('seq_num_mismatch', `the next sequence number is ${seqNum}`),
      field: 'matchSeqNum',
      seqNum,
    }
  }
  if (body.fencing_token_mismatch !== undefined) {
    const fencingToken = textOfJson(body.fencing_token_mismatch, 'fencing_token_mismatch')
    return {
      ...own('fencing_token_mismatch', 'the stream has another fencing token'),
      field: 'fencingToken',
      fencingToken,
    }
  }
  if (body.tail !== undefined && body.code === undefined) {
    const tail = positionOf(body.tail)
    return { ...own('range_not_satisfiable', 'no record is available at the requested start'), tail }
  }
  const sentCode = cleaned(textOfJson(body.code, 'code'))
  const code = Object.hasOwn(ERROR_KINDS, sentCode) ? (sentCode as ErrorCode) : undefined
  const { message, field = code && FIELDS[code] } = withApiFields(
    cleaned(textOfJson(body.message ?? '', 'message')),
  )
  return { code, sentCode, message, ...(field !== undefined && { field }), ...detailsOf(body) }
}

/** The details of errors of headwater's extensions. */
function detailsOf(body: Readonly<Record<string, unknown>>): ErrorDetails {
  const integer = (name: string) => integerOfJson(body[name], name)
  return {
    ...(body.seq_num !== undefined && { seqNum: integer('seq_num') }),
    ...(body.producer_epoch !== undefined && { producerEpoch: integer('producer_epoch') }),
    ...(body.expected_seq !== undefined && { expectedSeq: integer('expected_seq') }),
    ...(body.received_seq !== undefined && { receivedSeq: integer('received_seq') }),
    ...(body.last_seq !== undefined && { lastSeq: integer('last_seq') }),
    ...(body.stream_seq !== undefined && { streamSeq: textOfJson(body.stream_seq, 'stream_seq') }),
  }
}

function own(code: ErrorCode, message: string) {
  return { code, sentCode: code as string, message }
}

function cleaned(text: string): string {
  const short = text.length > MESSAGE_LENGTH_MAX ? `${text.slice(0, MESSAGE_LENGTH_MAX)}…` : text
  return short.replace(CONTROL, ' ')
}

/** Messages quote the field in backticks. */
function withApiFields(wireText: string): { readonly message: string; readonly field: string | undefined } {
  let field: string | undefined
  const message = wireText.replace(/`([\w.-]+)`/g, (_, name: string) => {
    const apiName = apiFieldOf(name)
    field ??= apiName
    return `\`${apiName ?? name}\``
  })
  return { message, field }
}
