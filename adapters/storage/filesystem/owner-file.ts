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

/** Undefined when the text is damaged. */
export function parseOwner(text: string): Owner | undefined {
  try {
    const owner = JSON.parse(text)
    return typeof owner?.pid === 'number' && typeof owner.host === 'string' ? owner : undefined
  } catch {
    return undefined
  }
}

/** Of a text that {@link parseOwner} takes. */
export function isCandidate(text: string): boolean {
  return !text.endsWith('\n')
}
