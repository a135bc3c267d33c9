import type { ProducerState, WriteState } from '../core/sequence.ts'
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

/** Returns the identity of a head, which an append that is sequenced against this head expects. */
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
 * @param start The start of the log. 0 by default.
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

/** The change of the write state of a log by an append, so that a storage need not write all producers. */
export interface WriteStateChange {
  /** True if the append closed the log. */
  readonly closed?: true | undefined
  /** The new `streamSeq`. */
  readonly streamSeq?: string | undefined
  /** The producers that follow those that stay, in order. They replace those with the same ids. */
  readonly producers: readonly ProducerState[]
  /** The ids of producers that are no longer known. */
  readonly dropped: readonly string[]
}

/** Returns what leads from one write state of a log to a later one; undefined if nothing changed. */
export function writeStateChange(
  before: WriteState | undefined,
  after: WriteState | undefined,
): WriteStateChange | undefined {
  if (after === before || after === undefined) return undefined
  const known = before?.producers ?? []
  const now = after.producers ?? []
  const moved: ProducerState[] = []
  let kept = 0
  for (const producer of known) {
    if (kept < now.length && isSame(producer, now[kept]!)) kept++
    else moved.push(producer)
  }
  const producers = now.slice(kept)
  const dropped = moved.map(({ id }) => id).filter((id) => !producers.some((producer) => producer.id === id))
  const closed = before?.closed ? undefined : after.closed
  const streamSeq = after.streamSeq === before?.streamSeq ? undefined : after.streamSeq
  const isUnchanged = !closed && streamSeq === undefined && producers.length + dropped.length === 0
  return isUnchanged ? undefined : { closed, streamSeq, producers, dropped }
}

/** Returns the write state after a change. */
export function withWriteStateChange(
  before: WriteState | undefined,
  { closed, streamSeq, producers, dropped }: WriteStateChange,
): WriteState {
  const gone = new Set([...dropped, ...producers.map(({ id }) => id)])
  const all = [...(before?.producers ?? []).filter(({ id }) => !gone.has(id)), ...producers]
  return {
    ...before,
    ...(closed && { closed }),
    ...(streamSeq !== undefined && { streamSeq }),
    ...(all.length > 0 && { producers: all }),
  }
}

/** Batches of one producer differ in their epoch, number or position. */
function isSame(a: ProducerState, b: ProducerState): boolean {
  if (a === b) return true
  const isSameBatch = a.id === b.id && a.epoch === b.epoch && a.seq === b.seq
  return isSameBatch && a.start.seqNum === b.start.seqNum
}
