import { EMPTY_BYTES } from '../model/bytes.ts'
import { decodePortable, encodePortable, paddingOf } from './base64-portable.ts'

/**
 * Strict standard base64 (wire-behaviour.md 7.2): padding and zero trailing bits are required; white space and the URL-safe alphabet
 * are refused. The fastest codec that the platform has is used.
 */
interface Base64Codec {
  readonly encode: (bytes: Uint8Array) => string
  readonly decode: (text: string) => Uint8Array | undefined
}

// The library's types do not know the newest of these yet.
const codec = selectBase64Codec(globalThis as unknown as Base64Platform)

/** Decodes, or returns undefined when the text is not strict base64. */
export function decodeBase64(text: string): Uint8Array | undefined {
  return text === '' ? EMPTY_BYTES : codec.decode(text)
}

export function encodeBase64(bytes: Uint8Array): string {
  return bytes.length === 0 ? '' : codec.encode(bytes)
}

/** What a platform may have: neither codec is a given, and neither may be imported. */
export interface Base64Platform {
  readonly Buffer?: {
    from(text: string, encoding: 'base64'): Uint8Array
    from(bytes: ArrayBufferLike, byteOffset: number, length: number): { toString(encoding: 'base64'): string }
  }
  readonly Uint8Array: {
    readonly fromBase64?: (text: string, options: { lastChunkHandling: 'strict' }) => Uint8Array
    readonly prototype: { readonly toBase64?: (this: Uint8Array) => string }
  }
}

export function selectBase64Codec({ Buffer, Uint8Array: native }: Base64Platform): Base64Codec {
  const { toBase64 } = native.prototype
  if (native.fromBase64 !== undefined && toBase64 !== undefined) {
    return { encode: (bytes) => toBase64.call(bytes), decode: standardDecoder(native.fromBase64) }
  }
  return Buffer === undefined ? { encode: encodePortable, decode: decodePortable } : bufferCodec(Buffer)
}

/** `fromBase64` is strict but for white space, which shows in the length of the result. */
function standardDecoder(
  fromBase64: NonNullable<Base64Platform['Uint8Array']['fromBase64']>,
): Base64Codec['decode'] {
  return (text) => {
    let bytes: Uint8Array
    try {
      bytes = fromBase64.call(Uint8Array, text, { lastChunkHandling: 'strict' })
    } catch {
      return undefined
    }
    return bytes.length === (text.length / 4) * 3 - paddingOf(text) ? bytes : undefined
  }
}

/** `Buffer` decodes almost anything; only what it encodes again to the same text was strict. */
function bufferCodec(buffer: NonNullable<Base64Platform['Buffer']>): Base64Codec {
  const encode = (bytes: Uint8Array) =>
    buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('base64')
  return {
    encode,
    decode: (text) => {
      const decoded = buffer.from(text, 'base64')
      if (encode(decoded) !== text) return undefined
      return new Uint8Array(decoded.buffer, decoded.byteOffset, decoded.length)
    },
  }
}
