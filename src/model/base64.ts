import { EMPTY_BYTES } from './bytes.ts'

/** Encodes bytes as padded base64 with the standard alphabet (docs/protocol.md "Base64"). */
export function encodeBase64(bytes: Uint8Array): string {
  return bytes.length === 0 ? '' : platform.encode(bytes)
}

/**
 * Decodes strict base64, or returns undefined: padding and zero trailing bits are required, and white space
 * and the URL-safe alphabet are rejected.
 */
export function decodeBase64(text: string): Uint8Array | undefined {
  return text === '' ? EMPTY_BYTES : strictly(platform, text)
}

/** The base64 of a platform, whose decoder accepts more than its encoder makes. */
export interface Base64Platform {
  readonly encode: (bytes: Uint8Array) => string
  readonly decode: (text: string) => Uint8Array
}

/** Only strict base64 is the encoding of its bytes. */
export function strictly({ encode, decode }: Base64Platform, text: string): Uint8Array | undefined {
  try {
    const bytes = decode(text)
    return encode(bytes) === text ? bytes : undefined
  } catch {
    return undefined
  }
}

/** Short enough to be spread into arguments on every platform. */
const PART_BYTES = 8_192

/** `atob` and `btoa`, which every platform has. */
export const webBase64: Base64Platform = {
  encode(bytes) {
    let binary = ''
    for (let start = 0; start < bytes.length; start += PART_BYTES) {
      binary += String.fromCharCode(...bytes.subarray(start, start + PART_BYTES))
    }
    return btoa(binary)
  },
  decode: (text) => Uint8Array.from(atob(text), (character) => character.charCodeAt(0)),
}

/** The part of Node's class in use, which is several times as fast. */
interface NodeBuffer {
  from(text: string, encoding: 'base64'): Uint8Array
  from(bytes: ArrayBufferLike, start: number, length: number): { toString(encoding: 'base64'): string }
}

const { Buffer } = globalThis as { Buffer?: NodeBuffer | undefined }
const platform = Buffer === undefined ? webBase64 : nodeBase64(Buffer)

function nodeBase64(buffers: NodeBuffer): Base64Platform {
  return {
    encode: ({ buffer, byteOffset, length }) => buffers.from(buffer, byteOffset, length).toString('base64'),
    decode(text) {
      const { buffer, byteOffset, length } = buffers.from(text, 'base64')
      return new Uint8Array(buffer, byteOffset, length)
    },
  }
}
