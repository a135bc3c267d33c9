import { promisify } from 'node:util'
import { constants, crc32, deflateRaw, inflateRaw } from 'node:zlib'
import { concatBytes } from '../../src/model/bytes.ts'

/**
 * gzip (RFC 1952) in members that say how long they are, in an extra field that other programs pass over: so the last whole one is found without
 * decompressing, and an export that was interrupted is cut back to it.
 */
const HEADER_BYTES = 20
const TRAILER_BYTES = 8
/** Magic, deflate, an extra field; no time, so that the same lines make the same bytes; 255: unknown system; extra field of 8 bytes. */
const HEADER_START = Uint8Array.of(0x1f, 0x8b, 8, 4, 0, 0, 0, 0, 0, 255, 8, 0, 0x48, 0x57, 4, 0)
/** What a member holds, at the most: far above what this program puts into one. */
export const MEMBER_PLAIN_BYTES_MAX = 32 * 1024 * 1024

const compress = promisify(deflateRaw)
const decompress = promisify(inflateRaw)

export function isGzip(bytes: Uint8Array): boolean {
  return bytes[0] === 0x1f && bytes[1] === 0x8b
}

export async function gzipMember(plain: Uint8Array): Promise<Uint8Array> {
  const deflated = await compress(plain, { level: constants.Z_DEFAULT_COMPRESSION })
  const header = new Uint8Array(HEADER_BYTES)
  header.set(HEADER_START)
  const trailer = new Uint8Array(TRAILER_BYTES)
  new DataView(header.buffer).setUint32(16, HEADER_BYTES + deflated.length + TRAILER_BYTES, true)
  const view = new DataView(trailer.buffer)
  view.setUint32(0, crc32(plain), true)
  view.setUint32(4, plain.length, true)
  return concatBytes([header, deflated, trailer])
}

/** How long the member is that begins so; undefined for what {@link gzipMember} has not made. */
export function memberLength(start: Uint8Array): number | undefined {
  if (start.length < HEADER_BYTES || !HEADER_START.every((byte, i) => start[i] === byte)) return undefined
  const length = new DataView(start.buffer, start.byteOffset).getUint32(16, true)
  return length < HEADER_BYTES + TRAILER_BYTES ? undefined : length
}

/** What a member holds; undefined when it is damaged. */
export async function memberContent(member: Uint8Array): Promise<Uint8Array | undefined> {
  const trailer = new DataView(member.buffer, member.byteOffset + member.length - TRAILER_BYTES)
  const deflated = member.subarray(HEADER_BYTES, member.length - TRAILER_BYTES)
  try {
    const plain = await decompress(deflated, { maxOutputLength: MEMBER_PLAIN_BYTES_MAX })
    const isWhole = crc32(plain) === trailer.getUint32(0, true) && plain.length === trailer.getUint32(4, true)
    return isWhole ? plain : undefined
  } catch {
    return undefined
  }
}

export const MEMBER_HEADER_BYTES = HEADER_BYTES
