import { concatBytes } from '../model/bytes.ts'
import { type Codec, CompressedDataError, type Compression, damaged, tooLarge } from './codec.ts'
import { nodeGzip, nodeZlib, nodeZstd } from './codec-node.ts'
import { loadZstdBinding, portableZstd } from './codec-zstd.ts'

/** Resolves to the codec of the runtime, or else to that of a library. */
export async function loadCodec(algorithm: Compression): Promise<Codec> {
  const zlib = nodeZlib()
  if (algorithm === 'zstd') return (zlib && nodeZstd(zlib)) ?? portableZstd(loadZstdBinding)
  return zlib === undefined ? portableGzip(await import('./gzip-module.ts')) : nodeGzip(zlib)
}

type Fflate = Pick<typeof import('fflate'), 'Gunzip' | 'gzipSync'>

/** Input is passed in pieces: a piece makes at most 1,032 times its length before the limit is checked. */
const PIECE_BYTES = 1024
/** Each member costs the decoder a buffer, however short it is. */
const MEMBERS_MAX = 256
const TRAILER_LENGTH = 8

/**
 * gzip for runtimes without their own. fflate neither checks checksums nor rejects truncated data, so this
 * does.
 */
export function portableGzip(fflate: Fflate): Codec {
  return {
    async compress(data) {
      return fflate.gzipSync(data, { mtime: 0 })
    },
    async decompress(data, bytesMax) {
      return gunzip(fflate, data, bytesMax)
    },
  }
}

function gunzip(fflate: Fflate, data: Uint8Array, bytesMax: number): Uint8Array {
  const parts: Uint8Array[] = []
  let bytes = 0
  let member = { crc: 0, bytes: 0 }
  let members = 1

  const gunzip = new fflate.Gunzip((part) => {
    bytes += part.length
    if (bytes > bytesMax) throw tooLarge()
    member.crc = crc32(part, member.crc)
    member.bytes += part.length
    if (part.length > 0) parts.push(part)
  })
  gunzip.onmember = (start) => {
    if (++members > MEMBERS_MAX) throw new CompressedDataError('malformed', 'too many members of gzip data')
    checkTrailer(data, start, member)
    member = { crc: 0, bytes: 0 }
  }
  try {
    for (let start = 0; start < data.length; start += PIECE_BYTES) {
      const end = Math.min(start + PIECE_BYTES, data.length)
      gunzip.push(data.subarray(start, end), end === data.length)
    }
  } catch (error) {
    if (error instanceof CompressedDataError) throw error
    throw damaged(error)
  }
  checkTrailer(data, data.length, member)
  return concatBytes(parts)
}

/** A member ends with the CRC-32 and the length of its content. */
function checkTrailer(data: Uint8Array, end: number, member: { crc: number; bytes: number }): void {
  if (end < TRAILER_LENGTH) throw new CompressedDataError('malformed', 'gzip data is cut short')
  const trailer = new DataView(data.buffer, data.byteOffset + end - TRAILER_LENGTH, TRAILER_LENGTH)
  if (trailer.getUint32(0, true) !== member.crc || trailer.getUint32(4, true) !== member.bytes) {
    throw new CompressedDataError('malformed', 'checksum of gzip data does not match')
  }
}

const TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let rest = byte
  for (let bit = 0; bit < 8; bit++) rest = rest & 1 ? 0xedb8_8320 ^ (rest >>> 1) : rest >>> 1
  return rest
})

/** The CRC-32 of gzip. `previous` is the checksum of the preceding data. */
export function crc32(data: Uint8Array, previous = 0): number {
  let crc = ~previous
  for (let i = 0; i < data.length; i++) crc = TABLE[(crc ^ data[i]!) & 0xff]! ^ (crc >>> 8)
  return ~crc >>> 0
}
