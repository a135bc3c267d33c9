import type { ProcessIdentity } from './process-identity.ts'

/** Who opens a directory. */
export interface Owner extends ProcessIdentity {
  /** When it began to open it. */
  readonly since: string
  /** Of the file system with its socket, as its kernel numbers it; none where there can be no socket. */
  readonly device?: number
  /** Of the file system with the directory, when it is one that other kernels cannot have mounted. */
  readonly filesystem?: string
}

/** More than any owner has to say: what is longer is cut off, and so damaged. */
export const OWNER_BYTES_MAX = 4096

const NAME = /^owner-[0-9a-f-]{36}$/
const LEFT_NAME = /^owner-[0-9a-f-]{36}\.(tmp|sock|sock\.tmp)$/

export function isOwnerName(name: string): boolean {
  return NAME.test(name)
}

/** Whether it is a name of what goes with the file of an owner. */
export function isLeftName(name: string): boolean {
  return LEFT_NAME.test(name)
}

export function socketOf(name: string): string {
  return `${name}.sock`
}

/** Of a candidate. One byte more makes it an owner, in one write that is either made or not, and without a moment in which the file is not there. */
export function encodeCandidate(owner: Owner): Buffer {
  return Buffer.from(JSON.stringify(owner))
}

/** What is written behind a candidate's file when it has the directory. */
export const OWNED = Buffer.from('\n')

/** What an owner may leave out. */
const TYPES = {
  since: 'string',
  boot: 'string',
  namespace: 'string',
  timeNamespace: 'string',
  started: 'string',
  device: 'number',
  filesystem: 'string',
} as const satisfies Partial<Record<keyof Owner, string>>

/** Undefined when the text is damaged: an owner that is not the one that wrote it could be taken for dead. */
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

/** Nothing else is the number of one process: 0 and what is negative stand for groups. */
function isProcessNumber(value: unknown): boolean {
  return Number.isInteger(value) && Number(value) > 0 && Number(value) <= PROCESS_NUMBER_MAX
}

const PROCESS_NUMBER_MAX = 0x7fff_ffff

/** Of a text that {@link parseOwner} takes. */
export function isCandidate(text: string): boolean {
  return !text.endsWith('\n')
}
