import type { Head, HeadIdentity, LogStart } from './contract.ts'
import { StorageConflict } from './errors.ts'

/** Returns the conflict of an append, or undefined if the head of the log is the expected one. */
export function appendConflict(
  logId: string,
  head: Head | undefined,
  expected: HeadIdentity,
): StorageConflict | undefined {
  if (head === undefined) return new StorageConflict(`log ${logId} does not exist`)
  if (isSameHead(identityOf(head), expected)) return undefined
  return new StorageConflict(`log ${logId} does not have the expected head`)
}

/** Throws {@link StorageConflict} unless the head of the log is the one that an append expects. */
export function assertExpectedHead(logId: string, head: Head | undefined, expected: HeadIdentity): void {
  const conflict = appendConflict(logId, head, expected)
  if (conflict !== undefined) throw conflict
}

/** Returns a copy of a head that a caller may modify. */
export function copyHead(head: Head): Head {
  const { tail, trims, extensions, writeState } = head
  return {
    ...head,
    tail: { ...tail },
    trims: trims.map((trim) => ({ ...trim })),
    ...(extensions && { extensions: extensions.map((extension) => ({ ...extension })) }),
    ...(writeState && { writeState: structuredClone(writeState) }),
  }
}

/** Returns what an append expects that is sequenced against this head. */
export function identityOf(head: Head): HeadIdentity {
  return { epoch: head.epoch, seqNum: head.tail.seqNum, appendId: head.appendId }
}

/** Whether both identify the same head of a log. */
export function isSameHead(a: HeadIdentity, b: HeadIdentity): boolean {
  return a.epoch === b.epoch && a.seqNum === b.seqNum && a.appendId === b.appendId
}

/** Whether the append that left this head trimmed the log, so that it may use reserved space. */
export function hasNewTrim({ trims, appendedAt }: Head): boolean {
  return trims.at(-1)?.at === appendedAt
}

const BEGINNING: LogStart = { tail: { seqNum: 0, timestamp: 0 }, fencingToken: '' }

/** Shared: there may be 100,000 heads. */
const NO_TRIMS: Head['trims'] = Object.freeze([])

/**
 * Returns the head of a log that was just created.
 *
 * @param createdAt Milliseconds since the Unix epoch.
 * @param start Where the log starts. At 0 by default.
 */
export function emptyHead(epoch: number, createdAt: number, start: LogStart = BEGINNING): Head {
  const { tail, fencingToken } = start
  return {
    epoch,
    tail: { seqNum: tail.seqNum, timestamp: tail.timestamp },
    trimPoint: tail.seqNum,
    fencingToken,
    appendId: '',
    appendedAt: createdAt,
    trims: NO_TRIMS,
  }
}
