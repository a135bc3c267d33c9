import type { AppendConditions } from '../model/append-input.ts'
import { HeadwaterError } from '../model/errors.ts'
import { APPEND_HEADER } from './header-names.ts'

/** The `match_seq_num` of a header that replaces that of the body with no condition. */
const ANY = 'any'

type HeaderConditions = Pick<AppendConditions, 'producer' | 'streamSeq' | 'matchSeqNum'>

/** Returns the value of the header; undefined if the append has neither a producer nor a `streamSeq`. */
export function encodeAppendHeader({
  producer,
  streamSeq,
  matchSeqNum,
}: HeaderConditions): string | undefined {
  if (producer === undefined && streamSeq === undefined) return undefined
  const parts: string[] = []
  if (producer !== undefined) {
    const { id, epoch, seq } = producer
    parts.push(`producer=${encodeURIComponent(id)}`, `epoch=${epoch}`, `seq=${seq}`)
  }
  if (streamSeq !== undefined) parts.push(`stream_seq=${encodeURIComponent(streamSeq)}`)
  parts.push(`match_seq_num=${matchSeqNum ?? ANY}`)
  return parts.join('&')
}

const NAMES = ['producer', 'epoch', 'seq', 'stream_seq', 'match_seq_num']

/**
 * Decodes the value of the header. The result has the member `matchSeqNum` only if it replaces that of the
 * body. Limits are left to `appendBatch`. Throws 400 `bad_header`.
 */
export function decodeAppendHeader(value: string): HeaderConditions {
  const members = new Map<string, string>()
  for (const part of value.split('&')) {
    const [name = '', text, ...more] = part.trim().split('=')
    if (text === undefined || more.length > 0 || !NAMES.includes(name) || members.has(name)) throw malformed()
    members.set(name, decoded(text))
  }
  const [id, epoch, seq, streamSeq, match] = NAMES.map((name) => members.get(name))
  const conditions = {
    streamSeq,
    ...(match !== undefined && { matchSeqNum: match === ANY ? undefined : integerOf(match) }),
  }
  if (id === undefined && epoch === undefined && seq === undefined) return conditions
  if (id === undefined || epoch === undefined || seq === undefined) throw malformed()
  return { producer: { id, epoch: integerOf(epoch), seq: integerOf(seq) }, ...conditions }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw malformed()
  }
}

function integerOf(text: string): number {
  if (!/^[0-9]{1,16}$/.test(text)) throw malformed()
  return Number(text)
}

function malformed(): HeadwaterError {
  const form = '`producer=ID&epoch=N&seq=N&stream_seq=TEXT&match_seq_num=N`, percent-encoded'
  return new HeadwaterError('bad_header', `Invalid header \`${APPEND_HEADER}\`: must be ${form}`, {
    field: APPEND_HEADER,
  })
}
