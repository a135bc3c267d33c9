import { HeadwaterError } from '../../model/errors.ts'

const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'))

/** SHA-256 in hexadecimal digits. Rejects with `unavailable` where a runtime keeps WebCrypto to itself, as browsers do on insecure pages. */
export async function sha256(bytes: Uint8Array): Promise<string> {
  const subtle = globalThis.crypto?.subtle
  if (subtle === undefined) {
    throw new HeadwaterError('unavailable', 'access tokens need WebCrypto: serve the page by https')
  }
  const digest = await subtle.digest('SHA-256', bytes as Uint8Array<ArrayBuffer>)
  return Array.from(new Uint8Array(digest), (byte) => HEX[byte]).join('')
}

/** Compares two digests in a time that does not depend on where they differ. */
export function sameDigest(one: string, other: string): boolean {
  let difference = one.length ^ other.length
  for (let i = 0; i < one.length; i++) difference |= one.charCodeAt(i) ^ other.charCodeAt(i)
  return difference === 0
}
