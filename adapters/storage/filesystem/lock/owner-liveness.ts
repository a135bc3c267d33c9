import { type Liveness, type ProcessIdentity, processLiveness } from './local-process.ts'
import type { Owner } from './owner-file.ts'

/** This process, as far as it helps to judge others. */
export interface LocalProcess extends ProcessIdentity {
  /** Device number of the directory's file system on this kernel. */
  readonly device?: number | undefined
  /** The same as {@link Owner.filesystem}. */
  readonly filesystem?: string | undefined
}

/** The result of connecting to an owner's socket; `none` if it proves nothing. */
export type ProbeResult = 'accepted' | 'refused' | 'none'

/** Whether the owner is running. It counts as dead only if that is certain. */
export async function ownerLiveness(
  owner: Owner,
  local: LocalProcess,
  answer: ProbeResult,
): Promise<Liveness> {
  const liveness = livenessBySocket(owner, local, answer)
  return liveness === 'unknown' ? processLiveness(owner, local) : liveness
}

/** The liveness by socket and owner file, without looking up the process (docs/storage-format.md "Owner"). */
export function livenessBySocket(owner: Owner, local: LocalProcess, answer: ProbeResult): Liveness {
  // An owner that accepts is alive, even if its pid is shifted or belongs to another container.
  if (answer === 'accepted') return 'alive'
  if (answer === 'refused' && (isOnThisKernel(owner, local) || isOnNoOtherKernel(owner, local))) return 'dead'
  return isOfEndedKernel(owner, local) ? 'dead' : 'unknown'
}

/**
 * Whether the owner with an empty file is running. It had a socket, and saw a local file system: no process
 * that came over the network leaves an empty file. So if this side sees a local one, no other kernel has it.
 */
export function emptyOwnerLiveness({ filesystem }: LocalProcess, answer: ProbeResult): Liveness {
  if (answer === 'accepted') return 'alive'
  return answer === 'refused' && filesystem !== undefined ? 'dead' : 'unknown'
}

/** The same kernel and the same files. */
function isOnThisKernel(owner: Owner, local: LocalProcess): boolean {
  return isSame(owner.boot, local.boot) && isSame(owner.device, local.device)
}

/**
 * Both sides must have a local file system: a machine that exports its disk sees a local one, while an owner
 * may come over the network.
 */
function isOnNoOtherKernel(owner: Owner, local: LocalProcess): boolean {
  return isSame(owner.filesystem, local.filesystem)
}

/** The disk has been mounted again since, so the earlier kernel no longer has it. */
function isOfEndedKernel(owner: Owner, local: LocalProcess): boolean {
  const areKnown = owner.boot !== undefined && local.boot !== undefined
  return areKnown && owner.boot !== local.boot && isOnNoOtherKernel(owner, local)
}

function isSame<Value>(one: Value | undefined, other: Value | undefined): boolean {
  return one !== undefined && one === other
}
