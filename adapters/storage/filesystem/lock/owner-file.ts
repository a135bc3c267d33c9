import type { ProcessIdentity } from './local-process.ts'

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
