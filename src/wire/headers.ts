import type { AppendConditions } from '../model/append-input.ts'
import { HeadwaterError } from '../model/errors.ts'
import { INTEGER_MAX } from '../model/limits.ts'
import { mediaTypeEssence } from './media-type.ts'

/**
 * The prefixes of protocol headers and of the session content type (docs/protocol.md "Header prefixes"): the
 * neutral one, and that of the published clients of the hosted service.
 */
export const HEADER_PREFIXES = ['svc', 's2'] as const

export type HeaderPrefix = (typeof HEADER_PREFIXES)[number]

/** The headers whose names begin with a prefix. */
const VENDOR_HEADERS = [
  'basin',
  'encryption-key',
  'format',
  'provision-result',
  'request-token',
  'stream-config',
] as const

export type VendorHeader = (typeof VENDOR_HEADERS)[number]

/** The name of a header, in lower case: `svc-basin`. */
export function vendorHeaderName(prefix: HeaderPrefix, header: VendorHeader): string {
  return NAMES[prefix][header]
}

/** Joined once: each request looks several of them up. */
const NAMES = { svc: namesWith('svc'), s2: namesWith('s2') }

function namesWith(prefix: HeaderPrefix): Readonly<Record<VendorHeader, string>> {
  return Object.fromEntries(VENDOR_HEADERS.map((header) => [header, `${prefix}-${header}`])) as never
}

export function sessionContentType(prefix: HeaderPrefix): string {
  return `${prefix}s/proto`
}

export interface RequestHeaders {
  /** The value of a header, by its name in lower case. */
  header(name: string): string | undefined
}

/**
 * The value of a header under any prefix, or undefined if it is absent. Throws 400 `bad_header` if it is
 * present under both with different values.
 */
export function vendorHeader(headers: RequestHeaders, header: VendorHeader): string | undefined {
  const neutral = vendorHeaderName('svc', header)
  const hosted = vendorHeaderName('s2', header)
  const value = headers.header(neutral)
  const other = headers.header(hosted)
  if (value !== undefined && other !== undefined && value !== other) {
    const message = `headers \`${neutral}\` and \`${hosted}\` have different values`
    throw new HeadwaterError('bad_header', message, { field: hosted })
  }
  return value ?? other
}

/**
 * The prefix in a request's session content type, or else in its vendor headers; the neutral one if it used
 * both, undefined if it used none.
 */
export function usedHeaderPrefix(headers: RequestHeaders): HeaderPrefix | undefined {
  const contentType = mediaTypeEssence(headers.header('content-type'))
  return (
    HEADER_PREFIXES.find((prefix) => contentType === sessionContentType(prefix)) ??
    HEADER_PREFIXES.find((prefix) =>
      VENDOR_HEADERS.some((header) => headers.header(vendorHeaderName(prefix, header)) !== undefined),
    )
  )
}

/** How JSON strings encode the bytes of headers and bodies (docs/protocol.md "Data format"). */
export type DataFormat = 'raw' | 'base64'

const DATA_FORMATS: ReadonlyMap<string, DataFormat> = new Map([
  ['raw', 'raw'],
  ['json', 'raw'],
  ['base64', 'base64'],
  ['json-binsafe', 'base64'],
])

/** Parses the `svc-format` header, by default `raw`. Throws 400 `bad_header`, which calls it `name`. */
export function parseDataFormat(value: string | undefined, name: string): DataFormat {
  const format = DATA_FORMATS.get((value ?? 'raw').trim())
  if (format !== undefined) return format
  const message = `Invalid header \`${name}\`: must be \`raw\` or \`base64\``
  throw new HeadwaterError('bad_header', message, { field: 'format' })
}

/**
 * The header of an append with a producer or a `streamSeq`, and of its response (docs/protocol.md
 * "Producers"). Other servers ignore it, and their responses do not have it.
 */
export const APPEND_HEADER = 'headwater-append'

/**
 * The header of replies to appends and reads: the identity of the stream, which no other one ever had. A
 * request that has it concerns this very stream, and none that was created later under its name
 * (docs/protocol.md "Stream identity").
 */
export const STREAM_ID_HEADER = 'headwater-stream-id'

/**
 * The header of a request whose expected outcomes are not to be failures: browsers report a request for a
 * stream that does not exist yet as an error. The reply is 200 then, and its header of this name has the
 * status (docs/protocol.md "Expected outcomes").
 */
export const STATUS_HEADER = 'headwater-status'

/** The value of the header of a response: how the batch was stored. */
export type AppendHeaderReply = 'stored' | 'duplicate'

/**
 * The `match_seq_num` in the body of an append whose header has the condition that counts. No stream has this
 * tail, so a server that ignores the header rejects the append instead of storing it without a check.
 */
export const UNMATCHED_SEQ_NUM = INTEGER_MAX

/** The `match_seq_num` of a header that replaces that of the body with no condition. */
const ANY = 'any'

type HeaderConditions = Pick<AppendConditions, 'producer' | 'streamSeq' | 'matchSeqNum'>

/** Returns the value of the header; undefined if the append has neither a producer nor a `streamSeq`. */
export function encodeAppendHeader(conditions: HeaderConditions): string | undefined {
  const { producer, streamSeq, matchSeqNum = ANY } = conditions
  if (producer === undefined && streamSeq === undefined) return undefined
  const parts: string[] = []
  if (producer !== undefined) {
    const { id, epoch, seq } = producer
    parts.push(`producer=${encodeURIComponent(id)}`, `epoch=${epoch}`, `seq=${seq}`)
  }
  if (streamSeq !== undefined) parts.push(`stream_seq=${encodeURIComponent(streamSeq)}`)
  return [...parts, `match_seq_num=${matchSeqNum}`].join('&')
}

const APPEND_HEADER_MEMBERS = ['producer', 'epoch', 'seq', 'stream_seq', 'match_seq_num']

/**
 * Decodes the value of the header. The result has the member `matchSeqNum` only if it replaces that of the
 * body. Limits are left to `appendBatch`. Throws 400 `bad_header`.
 */
export function decodeAppendHeader(value: string): HeaderConditions {
  const members = new Map<string, string>()
  for (const part of value.split('&')) {
    const [name = '', text, ...more] = part.trim().split('=')
    const isKnown = APPEND_HEADER_MEMBERS.includes(name) && !members.has(name)
    if (text === undefined || more.length > 0 || !isKnown) throw malformedAppendHeader()
    members.set(name, decodedText(text))
  }
  const [id, epoch, seq, streamSeq, match] = APPEND_HEADER_MEMBERS.map((name) => members.get(name))
  const conditions = {
    streamSeq,
    ...(match !== undefined && { matchSeqNum: match === ANY ? undefined : integerOfText(match) }),
  }
  if (id === undefined && epoch === undefined && seq === undefined) return conditions
  if (id === undefined || epoch === undefined || seq === undefined) throw malformedAppendHeader()
  return { producer: { id, epoch: integerOfText(epoch), seq: integerOfText(seq) }, ...conditions }
}

function decodedText(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw malformedAppendHeader()
  }
}

function integerOfText(text: string): number {
  if (!/^[0-9]{1,16}$/.test(text)) throw malformedAppendHeader()
  return Number(text)
}

function malformedAppendHeader(): HeadwaterError {
  const form = '`producer=ID&epoch=N&seq=N&stream_seq=TEXT&match_seq_num=N`, percent-encoded'
  return new HeadwaterError('bad_header', `Invalid header \`${APPEND_HEADER}\`: must be ${form}`, {
    field: APPEND_HEADER,
  })
}
