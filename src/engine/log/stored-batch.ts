import { deletedUnderReadError } from '../../api/errors.ts'
import { afterDelivering, isExhausted, type ReadPlan } from '../../core/read-plan.ts'
import { extendedExpiry, isExpired } from '../../core/retention.ts'
import { streamTailOf } from '../../core/sequence.ts'
import { READ_METERED_BYTES_MAX } from '../../model/limits.ts'
import { ReadBatch } from '../../storage/record-batch.ts'
import { spansOf } from '../../storage/record-spans.ts'
import { blockPart } from './block-part.ts'
import { decodeStored } from './errors.ts'
import { type ReadBudget, readCost } from './read-budget.ts'
import { expectedBytes, SMALL_BYTES } from './read-scheduler.ts'
import { PLAIN } from './record-codec.ts'
import type { StreamLog } from './stream-log.ts'

/** Whether a unary read wants few stored records of a plain stream, by their sequence numbers. */
export function isSmallRead(log: StreamLog, { start, floor, limits }: ReadPlan): boolean {
  if (!('seqNum' in start) || log.codec !== PLAIN) return false
  const count = log.head.tail.seqNum - Math.max(start.seqNum, floor)
  return count > 0 && expectedBytes(count, limits, log.recordBytes) <= SMALL_BYTES
}

/**
 * Reads one small batch in one request to the storage, as most unary reads do. Resolves to undefined if a
 * cursor has to read it: after a wait for memory, or because records have expired or the stream has changed.
 * Rejects with `stream_deleted`.
 */
export async function storedBatch(
  log: StreamLog,
  { start, floor, limits }: ReadPlan,
  budget: ReadBudget,
  now: number,
): Promise<ReadBatch | undefined> {
  const { extensions, tail } = log.head
  const endSeqNum = tail.seqNum
  const from = Math.max((start as { readonly seqNum: number }).seqNum, floor)
  // The storage stops after the block that reaches the limit.
  const cost = readCost(limits.bytes + READ_METERED_BYTES_MAX, limits.count)
  const expected = expectedBytes(endSeqNum - from, limits, log.recordBytes)
  if (!budget.scheduler.tryTake(expected) || !budget.tryAcquire(cost)) return undefined
  try {
    const blocks = await log.readBlocks(from, endSeqNum, limits)
    if (log.isDeleted) throw log.loss ?? deletedUnderReadError()
    if (log.isStale) return undefined
    const parts: Uint8Array[] = []
    let count = 0
    let meteredBytes = 0
    let position = from
    let lastSeqNum = -1
    let left = limits
    let isDone = false
    for (const block of blocks) {
      // Most blocks never expire, and calls cost more than the comparison.
      if (block.expiresAt !== null && isExpired(extendedExpiry(block, extensions), now)) return undefined
      const part = blockPart(block, position, endSeqNum, left, (cut) => decodeStored(() => spansOf(cut)))
      if (part.count > 0) {
        parts.push(part.data)
        lastSeqNum = part.lastSeqNum
      }
      count += part.count
      meteredBytes += part.meteredBytes
      position = part.next
      left = afterDelivering(limits, count, meteredBytes)
      isDone = part.ended || isExhausted(left) || position >= endSeqNum
      if (isDone) break
    }
    if (count === 0 || !isDone) return undefined
    log.recordBytes = meteredBytes / count
    const summary = { count, meteredBytes, lastSeqNum }
    const isAtTail = lastSeqNum + 1 === log.head.tail.seqNum
    return new ReadBatch(log.recordsOf(parts, false), summary, isAtTail ? streamTailOf(log.head) : undefined)
  } finally {
    budget.release(cost)
  }
}
