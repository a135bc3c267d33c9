import { randomBytes } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { StorageFailure } from '../../../../src/storage/errors.ts'
import { corrupt } from './errors.ts'
import type { Files } from './files.ts'

export const FILE_HEADER_BYTES = 48
/** The place of the synced length in a journal. */
export const SYNCED_END_OFFSET = 32

const MAGIC = 'HDWR'
/** The format version of new files. */
export const FORMAT_VERSION = 7
/**
 * The first version that is still read: version 5 added the extensions of retention, version 6 closed streams
 * and producers, version 7 the index of checkpoints.
 */
const VERSION_MIN = 4
const FLAG_UNSYNCED = 1
const KINDS = { journal: 'J', segment: 'S', checkpoint: 'C' } as const

export type FileKind = keyof typeof KINDS

export interface FileHeader {
  readonly kind: FileKind
  readonly number: number
  readonly version: number
  /** Initial value of every CRC in the file. */
  readonly salt: number
  /** Journals only: the length of the previous journal, in bytes. */
  readonly previousEnd: number
  /** Journals only: whether groups are written without a sync. */
  readonly unsynced: boolean
  /**
   * Journals only: everything before it was synced; 0 if unknown. Undefined if it is damaged, which an
   * opening ignores.
   */
  readonly syncedEnd: number | undefined
}

export function newHeader(
  kind: FileKind,
  number: number,
  journal: { readonly previousEnd: number; readonly unsynced: boolean } = { previousEnd: 0, unsynced: false },
): FileHeader {
  const salt = randomBytes(4).readUInt32LE()
  return { kind, number, version: FORMAT_VERSION, salt, ...journal, syncedEnd: 0 }
}

export function encodeHeader(header: FileHeader): Buffer {
  const bytes = Buffer.alloc(FILE_HEADER_BYTES)
  bytes.write(MAGIC + KINDS[header.kind], 0, 'latin1')
  bytes[5] = FORMAT_VERSION
  bytes.writeUInt16LE(header.unsynced ? FLAG_UNSYNCED : 0, 6)
  bytes.writeBigUInt64LE(BigInt(header.number), 8)
  bytes.writeBigUInt64LE(BigInt(header.previousEnd), 16)
  bytes.writeUInt32LE(header.salt, 24)
  bytes.writeUInt32LE(crc32(bytes.subarray(0, 28)), 28)
  if (header.syncedEnd) bytes.set(encodeSyncedEnd(header.syncedEnd, header.salt), SYNCED_END_OFFSET)
  return bytes
}

/** The bytes at {@link SYNCED_END_OFFSET}: zeros until they are first written. */
export function encodeSyncedEnd(end: number, salt: number): Buffer {
  const bytes = Buffer.alloc(FILE_HEADER_BYTES - SYNCED_END_OFFSET)
  bytes.writeBigUInt64LE(BigInt(end), 0)
  bytes.writeUInt32LE(crc32(bytes.subarray(0, 8), salt), 8)
  return bytes
}

function decodeSyncedEnd(bytes: Buffer, salt: number): number | undefined {
  const end = Number(bytes.readBigUInt64LE(0))
  if (!Number.isSafeInteger(end)) return undefined
  return bytes.equals(end === 0 ? Buffer.alloc(bytes.length) : encodeSyncedEnd(end, salt)) ? end : undefined
}

/** The bytes that {@link formatVersionOf} needs. */
const HEADER_START_BYTES = 6

/** Returns the format version in the first bytes of a file, or undefined if it is no file of the storage. */
function formatVersionOf(start: Uint8Array): number | undefined {
  return new TextDecoder('latin1').decode(start.subarray(0, 4)) === MAGIC ? start[5] : undefined
}

/** Throws `StorageFailure` unless this release reads files of the version. */
export function assertReadable(name: string, version: number): void {
  if (version >= VERSION_MIN && version <= FORMAT_VERSION) return
  const message = `${name} has format version ${version}, but this version of headwater reads ${VERSION_MIN} to ${FORMAT_VERSION}`
  throw new StorageFailure('corrupt', message, { nothingWritten: true })
}

/** Changes the header in the first bytes of a file to the present format version. */
export function upgradeHeader(bytes: Buffer, name: string): void {
  const isWhole = bytes.length >= FILE_HEADER_BYTES && crc32(bytes.subarray(0, 28)) === bytes.readUInt32LE(28)
  if (!isWhole) throw corrupt(name, 0, 'the header is damaged')
  bytes[5] = FORMAT_VERSION
  bytes.writeUInt32LE(crc32(bytes.subarray(0, 28)), 28)
}

/** The kind and number of a file, which its header and its name must agree on. */
export type FileIdentity = Pick<FileHeader, 'kind' | 'number'>

/**
 * Decodes the header of the named file, and throws `corrupt` if it is not that file's header: a file gets its
 * name once it is complete. `expected` differs from the name for an adopted journal.
 */
export function decodeHeader(
  bytes: Buffer,
  name: string,
  { kind, number }: FileIdentity = parseFileName(name)!,
): FileHeader {
  const isWhole = bytes.length >= SYNCED_END_OFFSET && crc32(bytes.subarray(0, 28)) === bytes.readUInt32LE(28)
  if (!isWhole || bytes.toString('latin1', 0, 5) !== MAGIC + KINDS[kind]) {
    throw corrupt(name, 0, `not a ${kind} header`)
  }
  assertReadable(name, bytes[5]!)
  if (bytes.length < FILE_HEADER_BYTES) throw corrupt(name, bytes.length, 'truncated')
  if (bytes.readBigUInt64LE(8) !== BigInt(number))
    throw corrupt(name, 8, 'the header belongs to another file')
  const previousEnd = Number(bytes.readBigUInt64LE(16))
  if (!Number.isSafeInteger(previousEnd)) throw corrupt(name, 16, 'a number is beyond 2^53 - 1')
  const salt = bytes.readUInt32LE(24)
  const syncedEnd = decodeSyncedEnd(bytes.subarray(SYNCED_END_OFFSET), salt)
  if (kind !== 'journal' && syncedEnd !== 0) throw corrupt(name, SYNCED_END_OFFSET, 'the header is not zero')
  return {
    kind,
    number,
    version: bytes[5]!,
    salt,
    syncedEnd,
    previousEnd,
    unsynced: (bytes.readUInt16LE(6) & FLAG_UNSYNCED) !== 0,
  }
}

export function fileName(kind: FileKind, number: number): string {
  return `${kind}-${String(number).padStart(10, '0')}`
}

const TEMPORARY = '.tmp'

export function temporaryName(name: string): string {
  return name + TEMPORARY
}

export function isTemporaryName(name: string): boolean {
  return name.endsWith(TEMPORARY) && parseFileName(name.slice(0, -TEMPORARY.length)) !== undefined
}

/** Returns undefined if the name is not that of a storage file. */
export function parseFileName(name: string): FileIdentity | undefined {
  const match = /^(journal|segment|checkpoint)-(\d{10,16})$/.exec(name)
  if (match === null) return undefined
  const file = { kind: match[1] as FileKind, number: Number(match[2]) }
  // Extra zeros or a number that was rounded would make it pass for another file.
  const isIts = Number.isSafeInteger(file.number) && fileName(file.kind, file.number) === name
  return isIts ? file : undefined
}

/** Returns the format version of each file. Leaves out what has no header. */
export async function formatVersions(
  files: Files,
  names: Iterable<string>,
): Promise<ReadonlyMap<string, number>> {
  const versions = new Map<string, number>()
  for (const name of names) {
    const version = await versionOf(files, name)
    if (version !== undefined) versions.set(name, version)
  }
  return versions
}

/**
 * Returns the different versions, ascending: a directory that an earlier release has written gets files of
 * the present version as it changes.
 */
export function distinctVersions(versions: ReadonlyMap<string, number>): number[] {
  return [...new Set(versions.values())].sort((a, b) => a - b)
}

/** Resolves to undefined for a damaged file, which is reported where it is read. */
async function versionOf(files: Files, name: string): Promise<number | undefined> {
  const file = await files.open(name, 'read').catch(() => undefined)
  if (file === undefined) return undefined
  try {
    const start = new Uint8Array(HEADER_START_BYTES)
    return (await file.read(start, 0)) === start.length ? formatVersionOf(start) : undefined
  } catch {
    return undefined
  } finally {
    await file.close()
  }
}
