import type { ProducerState, WriteState } from '../core/stream-state.ts'

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

/**
 * Returns what leads from one write state of a log to a later one; undefined if nothing changed.
 *
 * ```ts
 * const change = writeStateChange(headBefore.writeState, head.writeState)
 * if (change !== undefined) {
 *   const { closed, streamSeq, producers, dropped } = change
 *   for (const { id, epoch, seq, appendedAt, start, end } of producers) {
 *     rows.push({ id, epoch, seq, appendedAt, start, end })
 *   }
 *   console.log(closed, streamSeq, dropped)
 *   // The same state again, when the log is read.
 *   const writeState = withWriteStateChange(headBefore.writeState, change)
 *   console.log(writeState.closed, writeState.streamSeq, writeState.producers?.length)
 * }
 * ```
 */
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
