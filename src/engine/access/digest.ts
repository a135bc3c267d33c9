import { HeadwaterError } from '../../model/errors.ts'
import { unclocked } from '../../storage/unclocked.ts'
import { nodeCrypto } from '../node-crypto.ts'

/**
 * SHA-256 in hexadecimal digits: at once by `node:crypto` where the runtime has it, else by WebCrypto. Rejects with `unavailable` where a browser
 * keeps that from a page that is not secure.
 */
export async function sha256(bytes: Uint8Array): Promise<string> {
  const node = nodeCrypto()
  if (node !== undefined) return node.createHash('sha256').update(bytes).digest('hex')
  const subtle = globalThis.crypto?.subtle
  if (subtle === undefined) {
    throw new HeadwaterError(
      'unavailable',
      'access tokens need WebCrypto, which insecure pages lack: use https',
    )
  }
  const digest = await unclocked(subtle.digest('SHA-256', bytes as Uint8Array<ArrayBuffer>))
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, '0')).join('')
}

/** Compares two digests in a time that does not depend on where they differ. */
export function sameDigest(one: string, other: string): boolean {
  let difference = one.length ^ other.length
  for (let i = 0; i < one.length; i++) difference |= one.charCodeAt(i) ^ other.charCodeAt(i)
  return difference === 0
}
