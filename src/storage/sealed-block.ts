import { EMPTY_BYTES } from '../model/bytes.ts'
import type { Cipher } from '../model/config.ts'
import { BATCH_ENCODED_BYTES_MAX, BATCH_RECORDS_MAX } from '../model/limits.ts'
import { isCommandShaped, meteredBytesOf, NO_HEADERS, type SequencedRecord } from '../model/record.ts'
import { decodeRecords, encodeRecords } from './block-codec.ts'

/**
 * A block of an encrypted stream: one or more **segments**, each with the records of one append. As for plain
 * blocks, the concatenation of two blocks is the block of their records. Persisted: keep stable. Numbers are
 * unsigned and big-endian.
 *
 * | Offset | Bytes | |
 * |---|---|---|
 * | 0 | 1 | 0x07, which no protobuf message begins with, so a segment never passes for a plain block |
 * | 1 | 1 | format: 0x01 AEGIS-256, 0x02 AES-256-GCM |
 * | 2 | 4 | metered bytes of the records |
 * | 6 | 4 | length of the skeleton, *s* |
 * | 10 | 4 | length of the sealed part, *n*; 0 if all records are commands |
 * | 14 | *s* | skeleton: the records as a plain block, with neither headers nor body where they are sealed |
 * | 14 + *s* | *n* | nonce (AEGIS-256 32, AES-256-GCM 12), ciphertext, tag (32, 16) |
 *
 * The plaintext is the plain block of the ordinary records, in order, without sequence numbers and
 * timestamps. Command records are only in the skeleton, complete (docs/protocol.md "What is encrypted");
 * there, they are the records with headers.
 */
export interface SealedSegment {
  readonly cipher: Cipher
  readonly meteredBytes: number
  readonly skeleton: Uint8Array
  readonly sealed: Sealed | undefined
}

export interface Sealed {
  readonly nonce: Uint8Array
  /** Includes the tag at its end. */
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
 * Length of the largest segment, that of a batch with `BATCH_ENCODED_BYTES_MAX` bytes as a plain block. Each
 * record stores its tag and length twice; prefix, nonce and tag come on top.
 */
export const SEALED_BLOCK_BYTES_MAX = BATCH_ENCODED_BYTES_MAX + 2 * BATCH_RECORDS_MAX + PREFIX_BYTES + 64

export function encodeSegment({ cipher, meteredBytes, skeleton, sealed }: SealedSegment): Uint8Array {
  const nonce = sealed?.nonce ?? EMPTY_BYTES
  const ciphertext = sealed?.ciphertext ?? EMPTY_BYTES
  const bytes = new Uint8Array(PREFIX_BYTES + skeleton.length + nonce.length + ciphertext.length)
  bytes[0] = MARK
  bytes[1] = SEALED_FORMATS[cipher].id
  writeUint32(bytes, 2, meteredBytes)
  writeUint32(bytes, 6, skeleton.length)
  writeUint32(bytes, 10, nonce.length + ciphertext.length)
  bytes.set(skeleton, PREFIX_BYTES)
  bytes.set(nonce, PREFIX_BYTES + skeleton.length)
  bytes.set(ciphertext, PREFIX_BYTES + skeleton.length + nonce.length)
  return bytes
}

/**
 * Decodes the segments of a block. `data` and all other byte arrays are views. Throws `RangeError` if `data`
 * is not an encrypted block.
 */
export function decodeSegments(data: Uint8Array): (SealedSegment & { readonly data: Uint8Array })[] {
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength)
  const segments: (SealedSegment & { readonly data: Uint8Array })[] = []
  let start = 0
  while (start < data.length) {
    if (data.length - start < PREFIX_BYTES) throw new RangeError('not an encrypted block: truncated')
    if (view.getUint8(start) !== MARK) throw new RangeError('not an encrypted block: no segment')
    const cipher = cipherOf(view.getUint8(start + 1))
    const skeletonStart = start + PREFIX_BYTES
    const sealedStart = skeletonStart + view.getUint32(start + 6)
    const end = sealedStart + view.getUint32(start + 10)
    if (end > data.length) throw new RangeError('not an encrypted block: truncated')
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

/** Encodes what is stored of the records in plain text. */
export function encodeSkeleton(records: readonly SequencedRecord[]): Uint8Array {
  return encodeRecords(
    records.map((record) => {
      if (!isSealed(record)) return record
      const { seqNum, timestamp } = record
      return { seqNum, timestamp, headers: NO_HEADERS, body: EMPTY_BYTES }
    }),
  )
}

/** Decodes what is stored of the records in plain text. Throws `RangeError` if it is not a skeleton. */
export function decodeSkeleton(skeleton: Uint8Array): SequencedRecord[] {
  const records = decodeRecords(skeleton)
  const isPlain = ({ headers, body }: SequencedRecord) => headers.length > 0 || body.length > 0
  if (records.some((record) => isSealed(record) && isPlain(record))) {
    throw new RangeError('not a skeleton: an ordinary record in plain text')
  }
  return records
}

/** Whether the record is not a command, so that its headers and body are encrypted. */
export function isSealed({ headers }: Pick<SequencedRecord, 'headers'>): boolean {
  return !isCommandShaped(headers)
}

/** Encodes the plaintext of an append; undefined if all records are commands. */
export function encodePlaintext(
  records: readonly Pick<SequencedRecord, 'headers' | 'body'>[],
): Uint8Array | undefined {
  const ordinary: SequencedRecord[] = []
  for (const record of records) {
    const { headers, body } = record
    if (isSealed(record)) ordinary.push({ seqNum: 0, timestamp: 0, headers, body })
  }
  return ordinary.length === 0 ? undefined : encodeRecords(ordinary)
}

/**
 * Joins the skeleton and the plaintext of a segment to its records, with views of the plaintext. Throws
 * `RangeError` if they do not match: the number of records or the metered size differs.
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
    if (content === undefined) throw new RangeError('an encrypted block has too few records')
    metered += meteredBytesOf(content.headers, content.body)
    return {
      seqNum: record.seqNum,
      timestamp: record.timestamp,
      headers: content.headers,
      body: content.body,
    }
  })
  if (next !== ordinary.length) throw new RangeError('an encrypted block has too many records')
  if (metered !== meteredBytes) throw new RangeError('the metered size of an encrypted block is wrong')
  return records
}

/** Big-endian. A `DataView` for each append would cost more than this. */
function writeUint32(bytes: Uint8Array, offset: number, value: number): void {
  bytes[offset] = value >>> 24
  bytes[offset + 1] = value >>> 16
  bytes[offset + 2] = value >>> 8
  bytes[offset + 3] = value
}

function cipherOf(id: number): Cipher {
  for (const cipher of ['aegis-256', 'aes-256-gcm'] as const) {
    if (SEALED_FORMATS[cipher].id === id) return cipher
  }
  throw new RangeError('not an encrypted block: unknown format')
}

function sealedOf(cipher: Cipher, bytes: Uint8Array): Sealed | undefined {
  if (bytes.length === 0) return undefined
  const { nonceBytes, tagBytes } = SEALED_FORMATS[cipher]
  if (bytes.length < nonceBytes + tagBytes)
    throw new RangeError('not an encrypted block: ciphertext is truncated')
  return { nonce: bytes.subarray(0, nonceBytes), ciphertext: bytes.subarray(nonceBytes) }
}
