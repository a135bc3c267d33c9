import { mergeableBlocks, mergedBlock } from '../../../src/storage/block-sizes.ts'
import { addBlock } from './append-group.ts'
import { type BlockEntry, blockKey, blockRange, decodeBlock, INLINE_BYTES_MAX } from './layout.ts'
import type { OrderedKeyValueStore } from './store.ts'
import { Draft, type LogEntries, transact } from './transaction.ts'

/** The number of blocks that are merged at once, so that a merge adds little to as many appends. */
export const MERGED_BLOCKS = 64
/** The most blocks that one batch merges, after merges have failed. */
const SCANNED_BLOCKS_MAX = 256

/**
 * Merges small blocks at the end of a log, so that reads and trims of small appends need not touch an entry
 * for each. Merged blocks grow until they exceed what is stored inline. Blocks that expire are left as they
 * are, because each of them usually does so at a time of its own.
 *
 * The batch expects the log as it was before the blocks were read, and every change of its blocks changes
 * that.
 */
export async function mergeBlocks(
  store: OrderedKeyValueStore,
  logs: LogEntries,
  logId: string,
): Promise<void> {
  await transact(store, logs, async () => {
    const draft = new Draft(false)
    const entry = await logs.current(logId)
    const { log } = entry
    if (log === undefined || log.unmerged < MERGED_BLOCKS) return draft
    const limit = SCANNED_BLOCKS_MAX
    const found = await store.scan({ ...blockRange(logId, log.mergedBelow), limit })
    const groups = groupsOf(found.map(([, value]) => decodeBlock(value)))
    for (const group of groups) {
      if (group.length === 1) continue
      for (const { endSeqNum } of group.slice(0, -1)) draft.deletes.push(blockKey(logId, endSeqNum))
      addBlock(draft, logId, mergedBlock(group))
    }
    // The last group may still grow.
    const mergedBelow = groups.at(-1)?.[0]?.firstSeqNum ?? log.head.tail.seqNum
    const unmerged = Math.max(0, log.unmerged - found.length) + Math.min(groups.length, 1)
    draft.putLog(logId, entry, { ...log, mergedBelow: Math.max(log.mergedBelow, mergedBelow), unmerged })
    return draft
  })
}

/** Groups consecutive blocks. Those of a group are merged. */
function groupsOf(blocks: readonly BlockEntry[]): readonly BlockEntry[][] {
  const groups: BlockEntry[][] = []
  let bytes = 0
  for (const block of blocks) {
    const group = groups.at(-1)
    if (group !== undefined && bytes <= INLINE_BYTES_MAX && isMergeable([...group, block])) {
      group.push(block)
      bytes += block.data.length
    } else {
      groups.push([block])
      bytes = block.data.length
    }
  }
  return groups
}

function isMergeable(blocks: readonly BlockEntry[]): boolean {
  const [before, last] = blocks.slice(-2) as [BlockEntry, BlockEntry]
  const isKept = [before, last].every(({ expiresAt, hasData }) => expiresAt === null && hasData)
  return isKept && before.endSeqNum === last.firstSeqNum && mergeableBlocks(blocks).length === 1
}
