import type { RecordInput } from '../model/append-input.ts'
import { concatBytes, lossyTextOf, textOf, utf8 } from '../model/bytes.ts'
import { isCommandShaped, type SequencedRecord } from '../model/record.ts'
import type { RecordMark } from './fold-state.ts'

/** The name of the header that describes a part of a snapshot. */
const HEADER = 'headwater-snapshot'
/** Two parts fit in a batch, so that the last part can be read with the trim that follows it. */
const PART_BYTES = 500_000
/** Raised when the format changes. Snapshots of another format are ignored. */
const FORMAT = 1

/** The stream and the reducer that a snapshot belongs to. A fold uses only snapshots of its own kind. */
export interface SnapshotKind {
  /** The identity of the folded stream, which differs if the stream was deleted and created again. */
  readonly source: string
  /** The version of the reducer. */
  readonly version: number | string
}

/** A value of a fold at a position. */
export interface FoldSnapshot extends SnapshotKind {
  /** The sequence number after the last record that the value contains. */
  readonly position: number
  /** The last record that the value contains; null if there is none. */
  readonly last: RecordMark | null
  /** Keys of records that the value contains and the outbox still has. None by default. */
  readonly leaving?: readonly string[] | undefined
  /** Whether the state is JSON, or bytes of the app's own. */
  readonly isJson: boolean
  /** The encoded state. */
  readonly state: Uint8Array
}

/** One record of a snapshot that is divided into parts. */
export interface SnapshotPart extends FoldSnapshot {
  /** The place of the part, from 0. Its `state` is a part of the state. */
  readonly index: number
  readonly count: number
  /** The checksum of the whole snapshot. */
  readonly checksum: number
}

/** Divides a snapshot into records, each of which fits in a batch. */
export function recordsOfSnapshot(
  { state, ...described }: FoldSnapshot,
  partBytes = PART_BYTES,
): readonly RecordInput[] {
  const count = Math.max(1, Math.ceil(state.length / partBytes))
  const checksum = checksumOf(described, state)
  return Array.from({ length: count }, (_, index) => ({
    headers: [[HEADER, JSON.stringify({ format: FORMAT, ...described, index, count, checksum })]] as const,
    body: state.subarray(index * partBytes, (index + 1) * partBytes),
  }))
}

/** Returns the part of a snapshot that a record holds, or undefined if it holds none. */
export function snapshotPartOf({ headers, body }: SequencedRecord): SnapshotPart | undefined {
  const header = headers.find(([name]) => lossyTextOf(name) === HEADER)
  const text = header && textOf(header[1])
  if (text === undefined) return undefined
  try {
    const { format, ...part } = JSON.parse(text)
    return format === FORMAT && isDescribed(part) ? { ...part, state: body } : undefined
  } catch {
    return undefined
  }
}

/** The snapshots in the part of a stream that was read. */
interface SnapshotScan {
  /** The complete snapshots, from the newest to the oldest, at most two. */
  readonly complete: readonly FoldSnapshot[]
  /** The parts of a snapshot that is not complete. */
  readonly parts: readonly SnapshotPart[]
  /** The sequence number after the last record. */
  readonly end: number
}

/** The scan of a stream of which nothing was read. */
export const EMPTY_SCAN: SnapshotScan = { complete: [], parts: [], end: 0 }

/** Reads further records of a stream of snapshots. Damaged and incomplete snapshots are ignored. */
export function scanSnapshots(scan: SnapshotScan, records: readonly SequencedRecord[]): SnapshotScan {
  let { complete, parts, end } = scan
  for (const record of records) {
    const isNext = record.seqNum === end
    end = record.seqNum + 1
    // The trim of older snapshots.
    if (isCommandShaped(record.headers)) continue
    const part = snapshotPartOf(record)
    const before = isNext ? parts.at(-1) : undefined
    const continues = part !== undefined && before !== undefined && isFollowedBy(before, part)
    parts = continues ? [...parts, part] : part?.index === 0 ? [part] : []
    if (part === undefined || parts.length < part.count) continue
    const snapshot = snapshotOf(parts)
    parts = []
    if (snapshot !== undefined) complete = [snapshot, ...complete].slice(0, 2)
  }
  return { complete, parts, end }
}

/** Whether a snapshot is of a kind. */
export function isOfKind({ source, version }: SnapshotKind, kind: SnapshotKind): boolean {
  return source === kind.source && version === kind.version
}

function isFollowedBy(part: SnapshotPart, next: SnapshotPart): boolean {
  return next.index === part.index + 1 && next.checksum === part.checksum && next.position === part.position
}

/** Joins all parts of a snapshot. Undefined if it is damaged. */
function snapshotOf(parts: readonly SnapshotPart[]): FoldSnapshot | undefined {
  const { index: _, count, checksum, ...described } = parts[0]!
  const snapshot = { ...described, state: concatBytes(parts.map(({ state }) => state)) }
  return parts.length === count && checksumOf(snapshot, snapshot.state) === checksum ? snapshot : undefined
}

function checksumOf(described: Omit<FoldSnapshot, 'state'>, state: Uint8Array): number {
  const { source, version, position, last, isJson, leaving = [] } = described
  const place = [source, version, position, last && [last.seqNum, last.timestamp], isJson, ...leaving]
  return foldChecksum(state, foldChecksum(utf8(JSON.stringify(place))))
}

function isDescribed(
  part: Readonly<Record<string, unknown>>,
): part is Record<string, unknown> & SnapshotPart {
  const { source, version, position, last, isJson, leaving = [], index, count, checksum } = part
  return (
    typeof source === 'string' &&
    (typeof version === 'string' || typeof version === 'number') &&
    [position, index, count, checksum].every((number) => Number.isSafeInteger(number)) &&
    typeof isJson === 'boolean' &&
    Array.isArray(leaving) &&
    leaving.every((key) => typeof key === 'string') &&
    (last === null || isMark(last))
  )
}

function isMark(last: unknown): boolean {
  const { seqNum, timestamp } = Object(last)
  return Number.isSafeInteger(seqNum) && typeof timestamp === 'number'
}

const POLYNOMIAL = 0xedb8_8320

/** The remainder of each byte. */
const TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let remainder = byte
  for (let bit = 0; bit < 8; bit++) remainder = (remainder >>> 1) ^ (remainder & 1 ? POLYNOMIAL : 0)
  return remainder
})

/** Returns the CRC-32 of bytes, continued from that of the bytes before them. */
export function foldChecksum(bytes: Uint8Array, before = 0): number {
  let crc = ~before
  for (let index = 0; index < bytes.length; index++) {
    crc = (crc >>> 8) ^ TABLE[(crc ^ bytes[index]!) & 0xff]!
  }
  return ~crc >>> 0
}
