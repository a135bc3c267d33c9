import type { Owner } from './owner-file.ts'
import { mayRun, type ProcessIdentity } from './process-identity.ts'

/** From where an owner is looked at. */
export interface Here extends ProcessIdentity {
  /** Of the file system with the directory, as this kernel numbers it. */
  readonly device?: number
  /** As {@link Owner.filesystem}. */
  readonly filesystem?: string
}

/** How it came out to connect to the socket of an owner; `none` when that says nothing. */
export type SocketAnswer = 'accepted' | 'refused' | 'none'

/** Whether the owner is gone for certain. */
export async function isGone(owner: Owner, here: Here, answer: SocketAnswer): Promise<boolean> {
  const verdict = verdictOf(owner, here, answer)
  return verdict === 'unknown' ? !(await mayRun(owner, here)) : verdict === 'gone'
}

/** What can be told without a look at its process; docs/storage-format.md "Owner" has the reasons. */
export function verdictOf(owner: Owner, here: Here, answer: SocketAnswer): 'alive' | 'gone' | 'unknown' {
  // Numbers of processes may be shifted or those of another container: who answers is there.
  if (answer === 'accepted') return 'alive'
  if (answer === 'refused' && (isOnThisKernel(owner, here) || isOnNoOtherKernel(owner, here))) return 'gone'
  return isOfEndedKernel(owner, here) ? 'gone' : 'unknown'
}

/** And sees the same files. */
function isOnThisKernel(owner: Owner, here: Here): boolean {
  return isSame(owner.boot, here.boot) && isSame(owner.device, here.device)
}

/** Both have to say so: who exports a disk of its own sees a local one, and an owner may come over the network. */
function isOnNoOtherKernel(owner: Owner, here: Here): boolean {
  return isSame(owner.filesystem, here.filesystem)
}

/** The disk was mounted anew since, so that what is left of the kernel, if anything, does not have it any more. */
function isOfEndedKernel(owner: Owner, here: Here): boolean {
  const areKnown = owner.boot !== undefined && here.boot !== undefined
  return areKnown && owner.boot !== here.boot && isOnNoOtherKernel(owner, here)
}

function isSame<Value>(one: Value | undefined, other: Value | undefined): boolean {
  return one !== undefined && one === other
}
