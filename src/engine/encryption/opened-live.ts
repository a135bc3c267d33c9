import type { EncryptionKey } from '../../model/encryption-key.ts'
import type { StoredBlock } from '../../storage/contract.ts'
import type { ReadBatch } from '../../storage/record-batch.ts'
import { type LiveBatch, withData } from '../live-tail.ts'
import { isPromise, type MaybePromise, whenThere } from './cipher-suite.ts'

interface Opened {
  readonly key: EncryptionKey
  readonly batch: MaybePromise<ReadBatch>
}

const openedOf = new WeakMap<LiveBatch, Set<Opened>>()

/**
 * The plain form of a live batch, made once for all followers that have the same key: they share its encodings too. Kept as long as the live batch
 * is. A failure is not kept.
 */
export function openedOnce(
  live: LiveBatch,
  key: EncryptionKey,
  open: (sealed: StoredBlock) => MaybePromise<StoredBlock>,
): MaybePromise<ReadBatch> {
  const known = openedOf.get(live) ?? new Set()
  openedOf.set(live, known)
  for (const one of known) if (isSameKey(one.key, key)) return one.batch
  const batch = whenThere(open(live.sealed!), ({ data }) => withData(live, data))
  const opened: Opened = { key, batch }
  known.add(opened)
  if (isPromise(batch)) batch.catch(() => known.delete(opened))
  return batch
}

/** By value, in a time that doesn't tell how much of another's key was guessed. */
function isSameKey(one: EncryptionKey, other: EncryptionKey): boolean {
  if (one === other) return true
  const [a, b] = [one.bytes, other.bytes]
  let difference = a.length ^ b.length
  for (let i = 0; i < a.length; i++) difference |= a[i]! ^ (b[i] ?? 0)
  return difference === 0
}
