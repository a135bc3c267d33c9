import { randomBytes } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { Damage, type Medium, type NewFile } from '../media/medium.ts'

/** The layout of files, groups and frames (docs/storage-format.md). Persisted: keep stable. */

export type FileKind = 'journal' | 'segment' | 'checkpoint'

export const FORMAT_VERSION = 1
export const HEADER_BYTES = 32
export const GROUP_HEADER_BYTES = 28
/** Checksum, length of the payload, length of the data, checksum of the data. */
const FRAME_HEADER_BYTES = 16

/** The group was written before the one before it was durable. */
export const GROUP_UNSYNCED = 2

const MAGIC = 'HDWR'
const LETTERS: Readonly<Record<FileKind, string>> = { journal: 'J', segment: 'S', checkpoint: 'C' }
const GROUP_MAGIC = Buffer.from('GRUP')

export function fileName(kind: FileKind, number: number): string {
  return `${kind}-${String(number).padStart(10, '0')}`
}

/** Undefined for a name that is not of the storage. */
export function parseFileName(
  name: string,
): { readonly kind: FileKind; readonly number: number } | undefined {
  const match = /^(journal|segment|checkpoint)-(\d{10})$/.exec(name)
  return match === null ? undefined : { kind: match[1] as FileKind, number: Number(match[2]) }
}

/** Returns what `decode` does. An error of it becomes a failure that names the place of the damage. */
export function decodeOrThrowCorrupt<Result>(file: string, offset: number, decode: () => Result): Result {
  try {
    return decode()
  } catch (error) {
    throw new Damage(file, offset, (error as Error).message)
  }
}

export interface FileHeader {
  readonly kind: FileKind
  readonly number: number
  /** Of a journal: the number of its first group. Otherwise 0. */
  readonly firstGroup: number
  /** The initial value of the checksums of a journal, so that stored user data never passes for a group. */
  readonly salt: number
}

export function newSalt(): number {
  return randomBytes(4).readUInt32LE()
}

export function encodeHeader({ kind, number, firstGroup, salt }: FileHeader): Buffer {
  const bytes = Buffer.alloc(HEADER_BYTES)
  bytes.write(MAGIC + LETTERS[kind], 'latin1')
  bytes[5] = FORMAT_VERSION
  bytes.writeBigUInt64LE(BigInt(number), 8)
  bytes.writeBigUInt64LE(BigInt(firstGroup), 16)
  bytes.writeUInt32LE(salt, 24)
  bytes.writeUInt32LE(crc32(bytes.subarray(0, 28)), 28)
  return bytes
}

/** Throws a `corrupt` failure unless the bytes are the header of the file of this name. */
export function decodeHeader(bytes: Buffer, name: string): FileHeader {
  const expected = parseFileName(name)!
  if (bytes.length < HEADER_BYTES) throw new Damage(name, 0, 'the header is incomplete')
  if (bytes.toString('latin1', 0, 4) !== MAGIC) throw new Damage(name, 0, 'not a file of this storage')
  if (bytes[5] !== FORMAT_VERSION) {
    throw new Damage(name, 5, `format version ${bytes[5]}; this release reads ${FORMAT_VERSION}`)
  }
  if (crc32(bytes.subarray(0, 28)) !== bytes.readUInt32LE(28))
    throw new Damage(name, 0, 'the header is damaged')
  const isOther = bytes[4] !== LETTERS[expected.kind].charCodeAt(0)
  if (isOther || Number(bytes.readBigUInt64LE(8)) !== expected.number) {
    throw new Damage(name, 0, 'the file has the name of another')
  }
  const firstGroup = Number(bytes.readBigUInt64LE(16))
  return { ...expected, firstGroup, salt: bytes.readUInt32LE(24) }
}

export interface GroupHeader {
  /** Of the frames. */
  readonly bytes: number
  readonly number: number
  readonly frames: number
  readonly flags: number
}

export function encodeGroupHeader(bytes: Buffer, header: GroupHeader, salt: number): void {
  GROUP_MAGIC.copy(bytes)
  bytes.writeUInt32LE(header.bytes, 4)
  bytes.writeBigUInt64LE(BigInt(header.number), 8)
  bytes.writeUInt32LE(header.frames, 16)
  bytes.writeUInt32LE(header.flags, 20)
  bytes.writeUInt32LE(crc32(bytes.subarray(0, 24), salt), 24)
}

/** Returns the header of a group at `offset`; undefined if it is incomplete or damaged. */
export function decodeGroupHeader(bytes: Buffer, offset: number, salt: number): GroupHeader | undefined {
  const header = bytes.subarray(offset, offset + GROUP_HEADER_BYTES)
  const isGroup = header.length === GROUP_HEADER_BYTES && header.compare(GROUP_MAGIC, 0, 4, 0, 4) === 0
  if (!isGroup || crc32(header.subarray(0, 24), salt) !== header.readUInt32LE(24)) return undefined
  return {
    bytes: header.readUInt32LE(4),
    number: Number(header.readBigUInt64LE(8)),
    frames: header.readUInt32LE(16),
    flags: header.readUInt32LE(20),
  }
}

/** Returns the offset of what may be a group, at or after `from`; -1 if there is none. */
export function findGroup(bytes: Buffer, from: number): number {
  return bytes.indexOf(GROUP_MAGIC, from)
}

/** A frame. Its data are a view. */
export interface Frame {
  /** JSON. */
  readonly payload: unknown
  readonly data: Buffer
  /** One after its last byte. */
  readonly end: number
}

/** A new writer has room for so much, and a used one keeps at most as much as a large group needs. */
const BUFFER_BYTES = { first: 262_144, kept: 16 * 1_048_576 }

/** Frames one after the other, in a buffer that grows and is reused. */
export class FrameWriter {
  #buffer = Buffer.allocUnsafeSlow(BUFFER_BYTES.first)
  #length = 0

  get length(): number {
    return this.#length
  }

  /** What was written so far: a view, valid until the next call. */
  get bytes(): Buffer {
    return this.#buffer.subarray(0, this.#length)
  }

  /** Discards everything, and leaves room for a header. */
  begin(headerBytes: number): void {
    if (this.#buffer.length > BUFFER_BYTES.kept) this.#buffer = Buffer.allocUnsafeSlow(BUFFER_BYTES.first)
    this.#length = headerBytes
  }

  /**
   * Adds a frame. Returns its length.
   *
   * @param payload Becomes JSON.
   * @param data In pieces, which are joined.
   */
  add(payload: unknown, data: readonly Uint8Array[] = [], salt = 0): number {
    const text = JSON.stringify(payload)
    const dataBytes = data.reduce((sum, { length }) => sum + length, 0)
    // A code unit of UTF-16 takes at most three bytes of UTF-8.
    this.#reserve(FRAME_HEADER_BYTES + 3 * text.length + dataBytes)
    const buffer = this.#buffer
    const start = this.#length
    const payloadStart = start + FRAME_HEADER_BYTES
    const dataStart = payloadStart + buffer.write(text, payloadStart)
    let end = dataStart
    for (const piece of data) {
      buffer.set(piece, end)
      end += piece.length
    }
    buffer.writeUInt32LE(dataStart - payloadStart, start + 4)
    buffer.writeUInt32LE(dataBytes, start + 8)
    buffer.writeUInt32LE(crc32(buffer.subarray(dataStart, end)), start + 12)
    buffer.writeUInt32LE(crc32(buffer.subarray(start + 4, dataStart), salt), start)
    this.#length = end
    return end - start
  }

  #reserve(count: number): void {
    const needed = this.#length + count
    if (needed <= this.#buffer.length) return
    const larger = Buffer.allocUnsafeSlow(Math.max(needed, 2 * this.#buffer.length))
    this.#buffer.copy(larger, 0, 0, this.#length)
    this.#buffer = larger
  }
}

/** A segment or a checkpoint while it is written. */
export class FrameFile {
  readonly number: number
  readonly #file: NewFile
  readonly #frames = new FrameWriter()
  #bytes = 0

  private constructor(number: number, file: NewFile) {
    this.number = number
    this.#file = file
  }

  static async create(medium: Medium, kind: FileKind, number: number): Promise<FrameFile> {
    const file = new FrameFile(number, await medium.create(fileName(kind, number)))
    file.#frames.begin(HEADER_BYTES)
    encodeHeader({ kind, number, firstGroup: 0, salt: 0 }).copy(file.#frames.bytes)
    file.#bytes = HEADER_BYTES
    return file
  }

  /** The length of the file. */
  get bytes(): number {
    return this.#bytes
  }

  /** Adds a frame. Resolves to its length. */
  async add(payload: unknown, data?: readonly Uint8Array[]): Promise<number> {
    const bytes = this.#frames.add(payload, data)
    this.#bytes += bytes
    if (this.#frames.length >= BUFFER_BYTES.first) await this.#flush()
    return bytes
  }

  /** Gives the file its name. Durable once it resolves. */
  async finish(): Promise<void> {
    await this.#flush()
    await this.#file.finish()
  }

  abandon(): Promise<void> {
    return this.#file.abandon()
  }

  async #flush(): Promise<void> {
    await this.#file.write(this.#frames.bytes)
    this.#frames.begin(0)
  }
}

/** Reads the frame at `offset`. Throws `RangeError` if it is incomplete or damaged. */
export function readFrame(bytes: Buffer, offset: number, salt = 0): Frame {
  const end = checkedEnd(bytes, offset, salt)
  const start = offset + FRAME_HEADER_BYTES
  const middle = start + bytes.readUInt32LE(offset + 4)
  return {
    payload: JSON.parse(bytes.toString('utf8', start, middle)),
    data: bytes.subarray(middle, end),
    end,
  }
}

/** The end of the frame at `offset`. Throws `RangeError` if it is incomplete or damaged. */
export function checkedEnd(bytes: Buffer, offset: number, salt: number): number {
  if (offset + FRAME_HEADER_BYTES > bytes.length) throw damagedFrame()
  const middle = offset + FRAME_HEADER_BYTES + bytes.readUInt32LE(offset + 4)
  const end = middle + bytes.readUInt32LE(offset + 8)
  const isSound =
    end <= bytes.length &&
    crc32(bytes.subarray(offset + 4, middle), salt) === bytes.readUInt32LE(offset) &&
    crc32(bytes.subarray(middle, end)) === bytes.readUInt32LE(offset + 12)
  if (!isSound) throw damagedFrame()
  return end
}

function damagedFrame(): RangeError {
  return new RangeError('a frame is incomplete or damaged')
}

/** A value as JSON, without the names of its fields. */
export type Row = readonly unknown[]

/**
 * Encodes objects as their values, so that what is stored a million times is short. Persisted: keep stable.
 */
export class Fields<Value extends object> {
  readonly #names: readonly (keyof Value)[]

  constructor(...names: readonly (keyof Value)[]) {
    this.#names = names
  }

  encode(value: Value): Row {
    return this.#names.map((name) => value[name])
  }

  decode(row: Row): Value {
    const value: Partial<Value> = {}
    for (let i = 0; i < this.#names.length; i++) value[this.#names[i]!] = row[i] as Value[keyof Value]
    return value as Value
  }
}
