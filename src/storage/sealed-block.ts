import { EMPTY_BYTES } from '../model/bytes.ts'
import { isCommandShaped } from '../model/command.ts'
import type { Cipher } from '../model/config.ts'
import { BATCH_ENCODED_BYTES_MAX, BATCH_RECORDS_MAX } from '../model/limits.ts'
import { meteredBytesOf, type SequencedRecord } from '../model/record.ts'
import { decodeRecords, encodeRecords } from './block-codec.ts'

/**
 * A block of an encrypted stream: one or more **segments**, each the records of one append, so that the concatenation of two blocks is the
 * block of their records, as it is for plain ones. Persisted: keep stable. Numbers are unsigned and big-endian.
 *
 * | Offset | Bytes | |
 * |---|---|---|
 * | 0 | 1 | 0x07: what no protobuf message begins with, so nobody takes a segment for a plain block |
 * | 1 | 1 | format: 0x01 AEGIS-256, 0x02 AES-256-GCM |
 * | 2 | 4 | metered bytes of the records |
 * | 6 | 4 | length of the skeleton, *s* |
 * | 10 | 4 | length of what is sealed, *n*: 0 when all records are commands |
 * | 14 | *s* | skeleton: the records as a plain block (`block-codec.ts`), but without headers and body where they are sealed |
 * | 14 + *s* | *n* | nonce (AEGIS-256 32, AES-256-GCM 12), ciphertext, tag (32, 16) |
 *
 * The plaintext is the plain block of the ordinary records, in order, without sequence numbers and timestamps. Command records are
 * whole in the skeleton and nowhere else (wire-behaviour.md 10.3): they are the records there that have a header.
 */
export interface Segment {
  readonly cipher: Cipher
  readonly meteredBytes: number
  readonly skeleton: Uint8Array
  /** Undefined when all records are commands. */
  readonly sealed: Sealed | undefined
}

export interface Sealed {
  readonly nonce: Uint8Array
  /** With the tag at its end. */
  readonly ciphertext: Uint8Array
}

interface Format {
  readonly id: number
  readonly nonceBytes: number
  readonly tagBytes: number
}

export const SEALED_FORMATS: Readonly<Record<Cipher, Format>> = {
  'aegis-256': { id: 1, nonceBytes: 32, tagBytes: 32 },
  'aes-256-gcm': { id: 2, nonceBytes: 12, tagBytes: 16 },
}

const MARK = 0x07
const PREFIX_BYTES = 14

/**
 * Largest segment: that of a batch which is as long as a plain block may be (`BATCH_ENCODED_BYTES_MAX`). Each record has tag and length twice;
 * beside them come prefix, nonce and tag.
 */
export const SEALED_BLOCK_BYTES_MAX = BATCH_ENCODED_BYTES_MAX + 2 * BATCH_RECORDS_MAX + PREFIX_BYTES + 64

export function encodeSegment({ cipher, meteredBytes, skeleton, sealed }: Segment): Uint8Array {
  const nonce = sealed?.nonce ?? EMPTY_BYTES
  const ciphertext = sealed?.ciphertext ?? EMPTY_BYTES
  const bytes = new Uint8Array(PREFIX_BYTES + skeleton.length + nonce.length + ciphertext.length)
  const view = new DataView(bytes.buffer)
  view.setUint8(0, MARK)
  view.setUint8(1, SEALED_FORMATS[cipher].id)
  view.setUint32(2, meteredBytes)
  view.setUint32(6, skeleton.length)
  view.setUint32(10, nonce.length + ciphertext.length)
  bytes.set(skeleton, PREFIX_BYTES)
  bytes.set(nonce, PREFIX_BYTES + skeleton.length)
  bytes.set(ciphertext, PREFIX_BYTES + skeleton.length + nonce.length)
  return bytes
}

/** The segments of a block and where each lies. Their byte arrays are views of `data`. Throws `RangeError` when `data` is no sealed block. */
export function decodeSegments(data: Uint8Array): (Segment & { readonly data: Uint8Array })[] {
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength)
  const segments: (Segment & { readonly data: Uint8Array })[] = []
  let start = 0
  while (start < data.length) {
    if (data.length - start < PREFIX_BYTES) throw new RangeError('not a sealed block: cut short')
    if (view.getUint8(start) !== MARK) throw new RangeError('not a sealed block: no segment')
    const cipher = cipherOf(view.getUint8(start + 1))
    const skeletonStart = start + PREFIX_BYTES
    const sealedStart = skeletonStart + view.getUint32(start + 6)
    const end = sealedStart + view.getUint32(start + 10)
    if (end > data.length) throw new RangeError('not a sealed block: cut short')
    segments.push({
      cipher,
      meteredBytes: view.getUint32(start + 2),
      skeleton: data.subarray(skeletonStart, sealedStart),
      sealed: sealedOf(cipher, data.subarray(sealedStart, end)),
      data: data.subarray(start, end),
    })
    start = end
  }
  return segments
}

/** What of the records is stored in plain text. */
export function encodeSkeleton(records: readonly SequencedRecord[]): Uint8Array {
  return encodeRecords(
    records.map((record) => (isSealed(record) ? { ...record, headers: [], body: EMPTY_BYTES } : record)),
  )
}

/** The records as far as they are stored in plain text. Throws `RangeError` when it is no skeleton. */
export function decodeSkeleton(skeleton: Uint8Array): SequencedRecord[] {
  const records = decodeRecords(skeleton)
  const isPlain = ({ headers, body }: SequencedRecord) => headers.length > 0 || body.length > 0
  if (records.some((record) => isSealed(record) && isPlain(record))) {
    throw new RangeError('not a skeleton: an ordinary record in plain text')
  }
  return records
}

/** Whether it is an ordinary record, whose headers and body are sealed, and no command. */
export function isSealed({ headers }: Pick<SequencedRecord, 'headers'>): boolean {
  return !isCommandShaped(headers)
}

/** What is sealed of an append's records; undefined when all of them are commands. */
export function encodePlaintext(
  records: readonly Pick<SequencedRecord, 'headers' | 'body'>[],
): Uint8Array | undefined {
  const ordinary = records.filter(isSealed)
  if (ordinary.length === 0) return undefined
  return encodeRecords(ordinary.map(({ headers, body }) => ({ seqNum: 0, timestamp: 0, headers, body })))
}

/**
 * The records of a segment, from its plaintext, of which their byte arrays are views. Throws `RangeError` when they do not belong together: it
 * has other records than the skeleton, or they have another metered size than the segment.
 */
export function joinRecords(
  skeleton: readonly SequencedRecord[],
  plaintext: Uint8Array,
  meteredBytes: number,
): SequencedRecord[] {
  const ordinary = decodeRecords(plaintext)
  let next = 0
  let metered = 0
  const records = skeleton.map((record) => {
    const content = isSealed(record) ? ordinary[next++] : record
    if (content === undefined) throw new RangeError('a sealed block lacks a record')
    metered += meteredBytesOf(content.headers, content.body)
    return {
      seqNum: record.seqNum,
      timestamp: record.timestamp,
      headers: content.headers,
      body: content.body,
    }
  })
  if (next !== ordinary.length) throw new RangeError('a sealed block has a record too many')
  if (metered !== meteredBytes) throw new RangeError('a sealed block has another metered size')
  return records
}

function cipherOf(id: number): Cipher {
  for (const cipher of ['aegis-256', 'aes-256-gcm'] as const) {
    if (SEALED_FORMATS[cipher].id === id) return cipher
  }
  throw new RangeError('not a sealed block: unknown format')
}

function sealedOf(cipher: Cipher, bytes: Uint8Array): Sealed | undefined {
  if (bytes.length === 0) return undefined
  const { nonceBytes, tagBytes } = SEALED_FORMATS[cipher]
  if (bytes.length < nonceBytes + tagBytes) throw new RangeError('not a sealed block: ciphertext cut short')
  return { nonce: bytes.subarray(0, nonceBytes), ciphertext: bytes.subarray(nonceBytes) }
}
