import { isReclaimable, reclaimTimes } from '../../../src/core/retention.ts'
import type { Reclaimed, ReclaimLimits } from '../../../src/storage/contract.ts'
import {
  type BlockEntry,
  blockKey,
  blockRange,
  dataKey,
  decodeBlock,
  dueRange,
  firstBlockOf,
  logIdOfDueKey,
} from './layout.ts'
import type { OrderedKeyValueStore } from './store.ts'
import { Draft, type LogEntries, transact } from './transaction.ts'

/** The blocks that one batch frees, so that appends do not wait long. */
const BATCH_BLOCKS_MAX = 100
/** Most reclaims free only a few blocks of a log. */
const FIRST_PAGE_BLOCKS = 4

/**
 * Frees the beginnings of logs, batch by batch: a block that expires before an older one waits for it.
 * `exclusively` runs one while this session writes nothing else.
 */
export async function reclaimBlocks(
  store: OrderedKeyValueStore,
  logs: LogEntries,
  limits: ReclaimLimits,
  exclusively: <Result>(batch: () => Promise<Result>) => Promise<Result>,
): Promise<Reclaimed> {
  const logIds = new Set<string>()
  let left = limits.blocksMax
  let due = await dueLogs(store, limits)
  for (; due.size > 0 && left > 0; due = await dueLogs(store, limits)) {
    const batchMax = Math.min(left, BATCH_BLOCKS_MAX)
    let batch: Freed[] = []
    const draftBatch = async () => {
      const draft = new Draft(true)
      batch = []
      let batchLeft = batchMax
      for (const logId of due) {
        if (batchLeft <= 0) break
        const freed = await freeBeginning(store, logs, draft, logId, limits, batchLeft)
        batch.push(freed)
        batchLeft -= freed.cost
      }
      return draft
    }
    await exclusively(() => transact(store, logs, draftBatch))
    for (const { cost, changed } of batch) {
      left -= cost
      if (changed !== undefined) logIds.add(changed)
    }
  }
  return { more: due.size > 0, logIds: [...logIds] }
}

interface Freed {
  /** How much of the limit it takes. */
  readonly cost: number
  /** The log, if it exists and blocks of it were freed. */
  readonly changed: string | undefined
}

/** Resolves to logs that have something to free. */
async function dueLogs(
  store: OrderedKeyValueStore,
  { now, trimmedBefore }: ReclaimLimits,
): Promise<ReadonlySet<string>> {
  const limit = BATCH_BLOCKS_MAX
  const expired = await store.scan({ ...dueRange('x', now), limit })
  const trimmed = await store.scan({ ...dueRange('t', trimmedBefore), limit })
  return new Set([...expired, ...trimmed].map(([key]) => logIdOfDueKey(key)))
}

/** Frees blocks at the beginning of a log; with the last ones of a deleted log, its entry. */
async function freeBeginning(
  store: OrderedKeyValueStore,
  logs: LogEntries,
  draft: Draft,
  logId: string,
  limits: ReclaimLimits,
  blocksMax: number,
): Promise<Freed> {
  const entry = await logs.current(logId)
  const { log } = entry
  const freed: BlockEntry[] = []
  let kept: BlockEntry | undefined
  for await (const block of blocksOf(store, logId)) {
    if (freed.length === blocksMax || (log && !isReclaimable(reclaimTimes(block, log.head), limits))) {
      kept = block
      break
    }
    freed.push(block)
  }
  for (const { endSeqNum, hasData } of freed) {
    draft.deletes.push(blockKey(logId, endSeqNum))
    if (!hasData) draft.deletes.push(dataKey(logId, endSeqNum))
  }
  if (log !== undefined) {
    const bytes = freed.reduce((sum, { meteredBytes }) => sum + meteredBytes, 0)
    const first = kept === undefined ? null : firstBlockOf(kept)
    draft.putLog(logId, entry, { ...log, meteredBytes: log.meteredBytes - bytes, first })
  } else if (kept === undefined) draft.removeLog(logId, entry)
  const isChanged = log !== undefined && freed.length > 0
  return { cost: Math.max(freed.length, 1), changed: isChanged ? logId : undefined }
}

/** Yields the blocks of a log, in pages that become larger. */
async function* blocksOf(store: OrderedKeyValueStore, logId: string): AsyncGenerator<BlockEntry> {
  let after = 0
  for (let limit = FIRST_PAGE_BLOCKS; ; limit *= 2) {
    const page = await store.scan({ ...blockRange(logId, after), limit })
    for (const [, value] of page) {
      const block = decodeBlock(value)
      after = block.endSeqNum
      yield block
    }
    if (page.length < limit) return
  }
}
