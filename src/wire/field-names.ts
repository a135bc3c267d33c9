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
