import { blockExpiresAt, isBlockExpired, reclaimablePoint } from '../../../src/core/retention.ts'
import type { Head, Reclaimed, ReclaimLimits } from '../../../src/storage/contract.ts'
import {
  blockKey,
  blockRange,
  decodeBlock,
  decodeExpiry,
  type ExpiringBlock,
  encodeExpiry,
  expiryKey,
  indexRange,
  logIdOfDueKey,
  partKey,
  withExpiry,
} from './layout.ts'
import type { OrderedKeyValueStore } from './store.ts'
import { Draft, type LogEntries, transact } from './transaction.ts'

/** The blocks that one batch frees, so that appends do not wait long. */
const BATCH_BLOCKS_MAX = 100

type FreedBlock = Omit<ExpiringBlock, 'logId' | 'expiresAt'> & { readonly expiresAt: number | null }

/** The results of a batch, besides its writes. */
interface Step {
  readonly draft: Draft
  /** How much of the limit it takes. */
  readonly cost: number
  /** Existing logs whose blocks it frees. */
  readonly logIds: readonly string[]
}

/** Frees blocks, batch by batch. `exclusively` runs one while this session writes nothing else. */
export async function reclaimBlocks(
  store: OrderedKeyValueStore,
  logs: LogEntries,
  { now, trimmedBefore, blocksMax }: ReclaimLimits,
  exclusively: <Result>(batch: () => Promise<Result>) => Promise<Result>,
): Promise<Reclaimed> {
  const touched = new Set<string>()
  let left = blocksMax
  for (const next of [
    (limit: number) => expiredStep(store, logs, now, limit),
    (limit: number) => dueStep(store, logs, trimmedBefore, limit),
  ]) {
    while (left > 0) {
      const step = await exclusively(() => take(store, logs, () => next(Math.min(left, BATCH_BLOCKS_MAX))))
      if (step === undefined) break
      for (const logId of step.logIds) touched.add(logId)
      left -= step.cost
    }
  }
  const isAny = async (index: 'x' | 't', time: number) =>
    (await store.scan({ ...indexRange(index, time), limit: 1 })).length > 0
  const more = left <= 0 && ((await isAny('x', now)) || (await isAny('t', trimmedBefore)))
  return { more, logIds: [...touched] }
}

/** Resolves to undefined if there is nothing to do. */
async function take(
  store: OrderedKeyValueStore,
  logs: LogEntries,
  next: () => Promise<Step | undefined>,
): Promise<Step | undefined> {
  let step: Step | undefined
  await transact(store, logs, async () => {
    step = await next()
    return step?.draft ?? new Draft(true)
  })
  return step
}

async function expiredStep(
  store: OrderedKeyValueStore,
  logs: LogEntries,
  now: number,
  limit: number,
): Promise<Step | undefined> {
  const found = await store.scan({ ...indexRange('x', now), limit })
  if (found.length === 0) return undefined
  const byLog = new Map<string, ExpiringBlock[]>()
  for (const [key, value] of found) {
    const block = decodeExpiry(key, value)
    const blocks = byLog.get(block.logId)
    if (blocks === undefined) byLog.set(block.logId, [block])
    else blocks.push(block)
  }
  const draft = new Draft(true)
  for (const [logId, blocks] of byLog) {
    const entry = await logs.current(logId)
    const expired = await extend(store, draft, entry.log?.head, blocks, now)
    const freed = deleteBlocks(draft, logId, expired)
    if (entry.log === undefined) continue
    draft.putLog(logId, entry, { ...entry.log, meteredBytes: entry.log.meteredBytes - freed })
  }
  return { draft, cost: found.length, logIds: [...draft.entries.keys()] }
}

/** Stores the expiry of blocks that a longer retention keeps, and resolves to the others. */
async function extend(
  store: OrderedKeyValueStore,
  draft: Draft,
  head: Head | undefined,
  blocks: readonly ExpiringBlock[],
  now: number,
): Promise<readonly ExpiringBlock[]> {
  if (!head?.extensions?.length) return blocks
  const expired: ExpiringBlock[] = []
  for (const block of blocks) {
    const key = blockKey(block.logId, block.endSeqNum)
    const value = await store.get(key)
    const expiresAt = value && blockExpiresAt(decodeBlock(value), head.extensions)
    if (value === undefined || expiresAt === undefined || isBlockExpired(expiresAt, now)) {
      expired.push(block)
      continue
    }
    draft.puts.push([key, withExpiry(value, expiresAt)])
    removeFromIndex(draft, block)
    if (expiresAt !== null) draft.puts.push([expiryKey({ ...block, expiresAt }), encodeExpiry(block)])
  }
  return expired
}

/** Frees blocks of the first log that was trimmed or deleted. */
async function dueStep(
  store: OrderedKeyValueStore,
  logs: LogEntries,
  trimmedBefore: number,
  limit: number,
): Promise<Step | undefined> {
  const [due] = await store.scan({ ...indexRange('t', trimmedBefore), limit: 1 })
  if (due === undefined) return undefined
  const logId = logIdOfDueKey(due[0])
  const entry = await logs.current(logId)
  const { log } = entry
  const point = log && reclaimablePoint(log.head.trims, trimmedBefore)
  const found = await store.scan({ ...blockRange(logId, -1, point), limit })
  const isLast = found.length < limit
  const draft = new Draft(true)
  const freed = deleteBlocks(
    draft,
    logId,
    found.map(([, value]) => decodeBlock(value)),
  )
  if (log !== undefined) {
    const freedBelow = isLast ? point! : log.freedBelow
    draft.putLog(logId, entry, { ...log, meteredBytes: log.meteredBytes - freed, freedBelow })
  } else if (isLast) draft.removeLog(logId, entry)
  const isReported = log !== undefined && found.length > 0
  return { draft, cost: Math.max(found.length, 1), logIds: isReported ? [logId] : [] }
}

/** Returns the metered bytes of the blocks. */
function deleteBlocks(draft: Draft, logId: string, blocks: readonly FreedBlock[]): number {
  let freed = 0
  for (const { endSeqNum, expiresAt, meteredBytes, parts } of blocks) {
    freed += meteredBytes
    draft.deletes.push(blockKey(logId, endSeqNum))
    for (let part = 0; part < parts; part++) draft.deletes.push(partKey(logId, endSeqNum, part))
    if (expiresAt !== null) removeFromIndex(draft, { logId, endSeqNum, expiresAt, meteredBytes, parts })
  }
  return freed
}

/**
 * Expects the entry in the index, because another session may have freed or extended the block since it was
 * read: the block would be subtracted from its log twice. The entry of the log does not always show that.
 */
function removeFromIndex(draft: Draft, block: ExpiringBlock): void {
  const key = expiryKey(block)
  draft.expected.push([key, encodeExpiry(block)])
  draft.deletes.push(key)
}
