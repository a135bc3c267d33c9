import { randomBytes } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { corrupt } from './failures.ts'

export const FILE_HEADER_BYTES = 32

const MAGIC = 'HDWR'
const VERSION = 1
const FLAG_UNSYNCED = 1
const KINDS = { journal: 'J', segment: 'S', checkpoint: 'C' } as const

export type FileKind = keyof typeof KINDS

export interface FileHeader {
  readonly kind: FileKind
  readonly number: number
  /** Start value of every CRC in the file. */
  readonly salt: number
  /** Of journals: where the one before ends. */
  readonly previousEnd: number
  /** Of journals: written without syncing. */
  readonly unsynced: boolean
}

export function newHeader(
  kind: FileKind,
  number: number,
  journal: { readonly previousEnd: number; readonly unsynced: boolean } = { previousEnd: 0, unsynced: false },
): FileHeader {
  return { kind, number, salt: randomBytes(4).readUInt32LE(), ...journal }
}

export function encodeHeader(header: FileHeader): Buffer {
  const bytes = Buffer.alloc(FILE_HEADER_BYTES)
  bytes.write(MAGIC + KINDS[header.kind], 0, 'latin1')
  bytes[5] = VERSION
  bytes.writeUInt16LE(header.unsynced ? FLAG_UNSYNCED : 0, 6)
  bytes.writeBigUInt64LE(BigInt(header.number), 8)
  bytes.writeBigUInt64LE(BigInt(header.previousEnd), 16)
  bytes.writeUInt32LE(header.salt, 24)
  bytes.writeUInt32LE(crc32(bytes.subarray(0, 28)), 28)
  return bytes
}

/** What a header says of its file. */
export type FileIdentity = Pick<FileHeader, 'kind' | 'number'>

/** Rejects what is not the header of this file: files get their names when they are whole, so that is damage. An adopted journal is `expected` to say what it was. */
export function decodeHeader(
  bytes: Buffer,
  name: string,
  { kind, number }: FileIdentity = parseFileName(name)!,
): FileHeader {
  const isWhole =
    bytes.length === FILE_HEADER_BYTES && crc32(bytes.subarray(0, 28)) === bytes.readUInt32LE(28)
  if (!isWhole || bytes.toString('latin1', 0, 5) !== MAGIC + KINDS[kind]) {
    throw corrupt(name, 0, `it does not begin like a ${kind}`)
  }
  if (bytes[5] !== VERSION)
    throw corrupt(name, 5, `it has version ${bytes[5]}, and version ${VERSION} is known`)
  if (bytes.readBigUInt64LE(8) !== BigInt(number)) throw corrupt(name, 8, 'it is another file, renamed')
  const previousEnd = Number(bytes.readBigUInt64LE(16))
  if (!Number.isSafeInteger(previousEnd)) throw corrupt(name, 16, 'a number is beyond 2^53 - 1')
  return {
    kind,
    number,
    salt: bytes.readUInt32LE(24),
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

/** Undefined for the name of a file that is none of the storage's. */
export function parseFileName(name: string): FileIdentity | undefined {
  const match = /^(journal|segment|checkpoint)-(\d{10,16})$/.exec(name)
  if (match === null) return undefined
  const file = { kind: match[1] as FileKind, number: Number(match[2]) }
  // With zeros too many, or a number that is rounded, it would pass for another file.
  const isIts = Number.isSafeInteger(file.number) && fileName(file.kind, file.number) === name
  return isIts ? file : undefined
}
