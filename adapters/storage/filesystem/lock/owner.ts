import { type Liveness, type ProcessIdentity, processLiveness } from './local-process.ts'

/** The process that opens a directory. Persisted as JSON: keep stable. */
export interface Owner extends ProcessIdentity {
  /** Number of the thread within the process; 0 is the main thread. */
  readonly thread?: number | undefined
  /** The time at which the process began to open the directory, in ISO 8601. */
  readonly since: string
  /** Device number of the file system with its socket, on its kernel; absent without a socket. */
  readonly device?: number | undefined
  /** Name of the directory's file system, if no other kernel can have it mounted. */
  readonly filesystem?: string | undefined
}

/** More than any owner file needs: a longer one is truncated, and so damaged. */
export const OWNER_BYTES_MAX = 4096

const NAME = /^owner-[0-9a-f-]{36}$/
const LEFT_NAME = /^owner-[0-9a-f-]{36}\.(tmp|sock|sock\.tmp)$/

export function isOwnerName(name: string): boolean {
  return NAME.test(name)
}

/** Whether the name is that of a socket or of an unfinished owner file. */
export function isLeftoverName(name: string): boolean {
  return LEFT_NAME.test(name)
}

export function socketName(name: string): string {
  return `${name}.sock`
}

/**
 * The owner file of a candidate. One more byte turns it into an owner: an atomic write, without a moment in
 * which the file does not exist.
 */
export function encodeCandidate(owner: Owner): Buffer {
  return Buffer.from(JSON.stringify(owner))
}

/** Appended to a candidate's file once it holds the lock. */
export const LOCKED_SUFFIX = Buffer.from('\n')

/** Optional fields and their types. */
const TYPES = {
  thread: 'number',
  since: 'string',
  boot: 'string',
  namespace: 'string',
  timeNamespace: 'string',
  started: 'string',
  device: 'number',
  filesystem: 'string',
} as const satisfies Partial<Record<keyof Owner, string>>

/**
 * Whether the owner file of this process may be empty, because the disk is full. Others then judge it by its
 * socket alone, whose refusal proves nothing on a file system that other machines may share.
 */
export function mayBeEmpty({ device, filesystem }: Owner): boolean {
  return device !== undefined && filesystem !== undefined
}

/** Returns undefined if the text is damaged: a wrong owner could be taken for dead. */
export function parseOwner(text: string): Owner | undefined {
  try {
    const owner = JSON.parse(text)
    return isOwner(owner) ? owner : undefined
  } catch {
    return undefined
  }
}

function isOwner(value: Record<string, unknown> | null): boolean {
  if (!isProcessNumber(value?.pid) || typeof value?.host !== 'string') return false
  return Object.entries(TYPES).every(([name, type]) => [type, 'undefined'].includes(typeof value[name]))
}

/** Zero and negative numbers stand for process groups. */
function isProcessNumber(value: unknown): boolean {
  return Number.isInteger(value) && Number(value) > 0 && Number(value) <= PROCESS_NUMBER_MAX
}

const PROCESS_NUMBER_MAX = 0x7fff_ffff

/** Whether the text, which {@link parseOwner} accepts, is that of a candidate. */
export function isCandidate(text: string): boolean {
  return !text.endsWith('\n')
}

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

/** Whether the owner ran on this kernel, and had the same files. */
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
