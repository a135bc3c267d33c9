import { EMPTY_BYTES } from '../model/bytes.ts'

/**
 * A base64 implementation of the platform. Its decoder may be lenient: {@link selectBase64Codec} makes it
 * strict.
 */
interface Base64Codec {
  readonly encode: (bytes: Uint8Array) => string
  /** Returns undefined if the text is not strict base64. */
  readonly decode: (text: string) => Uint8Array | undefined
}

const codec = selectBase64Codec(globalThis as unknown as Base64Platform)

/** Encodes bytes as padded base64 with the standard alphabet (docs/protocol.md "Base64"). */
export function encodeBase64(bytes: Uint8Array): string {
  return bytes.length === 0 ? '' : codec.encode(bytes)
}

/**
 * Decodes strict base64, or returns undefined: padding and zero trailing bits are required, and white space
 * and the URL-safe alphabet are rejected.
 */
export function decodeBase64(text: string): Uint8Array | undefined {
  return text === '' ? EMPTY_BYTES : codec.decode(text)
}

/** The base64 functions that a platform may have. Every one has `atob` and `btoa`. */
export interface Base64Platform {
  readonly Buffer?:
    | {
        from(text: string, encoding: 'base64'): Uint8Array
        from(
          bytes: ArrayBufferLike,
          byteOffset: number,
          length: number,
        ): { toString(encoding: 'base64'): string }
      }
    | undefined
  readonly Uint8Array: {
    readonly fromBase64?: ((text: string) => Uint8Array) | undefined
    readonly prototype: { readonly toBase64?: ((this: Uint8Array) => string) | undefined }
  }
}

/** Selects the fastest implementation of the platform: `Uint8Array`, `Buffer`, or `atob` and `btoa`. */
export function selectBase64Codec({ Buffer, Uint8Array: native }: Base64Platform): Base64Codec {
  const { fromBase64, prototype } = native
  const { toBase64 } = prototype
  if (fromBase64 !== undefined && toBase64 !== undefined) {
    return strict(
      (bytes) => toBase64.call(bytes),
      (text) => fromBase64.call(Uint8Array, text),
    )
  }
  if (Buffer === undefined) return strict(encodeBinaryString, decodeBinaryString)
  return strict(
    (bytes) => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('base64'),
    (text) => {
      const { buffer, byteOffset, length } = Buffer.from(text, 'base64')
      return new Uint8Array(buffer, byteOffset, length)
    },
  )
}

/**
 * Every decoder accepts some texts that are not strict base64. Only a strict one is the encoding of its
 * bytes.
 */
function strict(encode: Base64Codec['encode'], decode: (text: string) => Uint8Array): Base64Codec {
  return {
    encode,
    decode: (text) => {
      try {
        const bytes = decode(text)
        return encode(bytes) === text ? bytes : undefined
      } catch {
        return undefined
      }
    },
  }
}

/** Short enough to be spread into arguments on every platform. */
const PART_BYTES = 8_192

function encodeBinaryString(bytes: Uint8Array): string {
  let binary = ''
  for (let start = 0; start < bytes.length; start += PART_BYTES) {
    binary += String.fromCharCode(...bytes.subarray(start, start + PART_BYTES))
  }
  return btoa(binary)
}

function decodeBinaryString(text: string): Uint8Array {
  const binary = atob(text)
  const bytes = new Uint8Array(binary.length)
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i)
  return bytes
}
