import { pipeline, Readable } from 'node:stream'
import { promisify } from 'node:util'
import { constants, crc32, createGunzip, deflateRaw, inflateRaw } from 'node:zlib'
import { concatBytes } from '../../src/model/bytes.ts'
import { TransferError } from './transfer-error.ts'

/**
 * The header of a gzip member (RFC 1952) with its length in an extra field, which other programs ignore. The
 * length makes it possible to find the last complete member of an interrupted export and to truncate the file
 * there.
 */
const HEADER_BYTES = 20
const TRAILER_BYTES = 8
/**
 * Magic, deflate, extra field, no time (so that equal lines give equal bytes), unknown system, 8 bytes of
 * extra field.
 */
const HEADER_START = Uint8Array.of(0x1f, 0x8b, 8, 4, 0, 0, 0, 0, 0, 255, 8, 0, 0x48, 0x57, 4, 0)
/** Limits decompression. Far above what this program writes into a member. */
export const MEMBER_PLAIN_BYTES_MAX = 32 * 1024 * 1024

const compress = promisify(deflateRaw)
const decompress = promisify(inflateRaw)

function isGzip(bytes: Uint8Array): boolean {
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

/**
 * Returns the length of the member that starts with these bytes; undefined unless {@link gzipMember} wrote
 * it.
 */
export function memberLength(start: Uint8Array): number | undefined {
  if (start.length < HEADER_BYTES || !HEADER_START.every((byte, i) => start[i] === byte)) return undefined
  const length = new DataView(start.buffer, start.byteOffset).getUint32(16, true)
  return length < HEADER_BYTES + TRAILER_BYTES ? undefined : length
}

/** Resolves to the content of a member; undefined if it is damaged. */
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

/** Decompresses an input if it is gzip. A truncated input ends where it was truncated, without an error. */
export async function* gunzipped(input: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const source = input[Symbol.asyncIterator]()
  const start: Uint8Array[] = []
  let bytes = 0
  while (bytes < 2) {
    const { done, value } = await source.next()
    if (done) break
    start.push(value)
    bytes += value.length
  }
  const all = prepend(concatBytes(start), source)
  if (!isGzip(concatBytes(start))) {
    yield* all
    return
  }
  const gunzip = createGunzip({ finishFlush: constants.Z_SYNC_FLUSH, chunkSize: 256 * 1024 })
  // Errors reach the consumer through the last stream.
  pipeline(Readable.from(all), gunzip, () => {})
  try {
    for await (const chunk of gunzip) yield chunk
  } catch (cause) {
    if (!isZlibError(cause)) throw cause
    throw new TransferError(`the compressed input is damaged: ${(cause as Error).message}`, { cause })
  }
}

async function* prepend(
  start: Uint8Array,
  source: AsyncIterator<Uint8Array>,
): AsyncGenerator<Uint8Array, void, undefined> {
  try {
    if (start.length > 0) yield start
    for (;;) {
      const { done, value } = await source.next()
      if (done) return
      yield value
    }
  } finally {
    await source.return?.()
  }
}

function isZlibError(error: unknown): boolean {
  return String((error as { code?: unknown }).code).startsWith('Z_')
}
