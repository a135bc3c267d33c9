import { compareUtf8, utf8 } from '../model/bytes.ts'
import { secureRandom } from '../runtime/ids.ts'
import type { ListRange } from './contract.ts'

/** The keys of a list as bytes of UTF-8, whose order is that of `StorageSession.list`. */
export interface KeyBounds {
  /** The lower bound. */
  readonly from: Uint8Array
  /** Whether `from` itself is excluded. */
  readonly isFromExcluded: boolean
  /** The upper bound, exclusive. */
  readonly to: Uint8Array
}

/** Returns the bounds of the keys that a list selects, or undefined if there can be none. */
export function keyBounds({ prefix, after, limit }: ListRange): KeyBounds | undefined {
  const isAfter = compareUtf8(after, prefix) >= 0
  if (limit <= 0 || (isAfter && !after.startsWith(prefix))) return undefined
  return {
    from: utf8(isAfter ? after : prefix),
    isFromExcluded: isAfter,
    // UTF-8 never contains the byte 0xff.
    to: Uint8Array.of(...utf8(prefix), 0xff),
  }
}

/**
 * Returns 53 random bits as the version of a document, for storages in which a counter would make unrelated
 * commits conflict. Repeats one of a million earlier versions with a probability of 1 in 9 billion.
 */
export function randomVersion(): number {
  return Math.floor(secureRandom() * 2 ** 21) * 2 ** 32 + Math.floor(secureRandom() * 2 ** 32)
}
