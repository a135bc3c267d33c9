import { BlockCollector } from '../../../src/storage/block-collector.ts'
import type { ReadRange, StoredBlock } from '../../../src/storage/contract.ts'
import { cutBlock, wantsPart } from '../../../src/storage/cut-block.ts'
import { type BlockEntry, blockKey, blockRange, dataKey, decodeBlock, storeDamaged } from './layout.ts'
import type { OrderedKeyValueStore } from './store.ts'
import type { LogEntries } from './transaction.ts'

/** The most blocks per scan: few at first, because those beyond the limits are read for nothing. */
const BLOCKS_MAX = { first: 32, next: 128 }

/** Reads the blocks of a log that a read wants; of the first one, only the records. */
export async function readLogBlocks(
  store: OrderedKeyValueStore,
  logs: LogEntries,
  logId: string,
  range: ReadRange,
): Promise<StoredBlock[]> {
  const collector = new BlockCollector<BlockEntry>(range)
  if (collector.isDone) return []
  const { log } = await logs.current(logId)
  if (log === undefined) return []
  const { from } = range
  let after =
    'seqNum' in from ? from.seqNum : await seqNumAt(store, logId, from.timestamp, log.head.tail.seqNum)
  let isMerged = false
  for (let blocksMax = BLOCKS_MAX.first; !collector.isDone && !isMerged; blocksMax = BLOCKS_MAX.next) {
    const limit = Math.max(1, Math.min(blocksMax, collector.recordsLeft))
    const found = await store.scan({ ...blockRange(logId, after), limit })
    for (const [, value] of found) {
      const entry = decodeBlock(value)
      // A block that was merged since the last scan also contains records that were read. The next read cuts it.
      isMerged = collector.blocks.length > 0 && entry.firstSeqNum < after
      if (isMerged) break
      after = entry.endSeqNum
      const isCut = collector.blocks.length === 0 && wantsPart(entry, range)
      const block = isCut ? await cutEntry(store, logId, entry, range) : entry
      if (block !== undefined) collector.add(block)
    }
    if (found.length < limit) break
  }
  const blocks = await Promise.all(collector.blocks.map((entry) => loadBlock(store, logId, entry)))
  return blocks.filter((block) => block !== undefined)
}

/** Undefined if the block was freed meanwhile. */
async function cutEntry(
  store: OrderedKeyValueStore,
  logId: string,
  entry: BlockEntry,
  range: ReadRange,
): Promise<BlockEntry | undefined> {
  const block = await loadBlock(store, logId, entry)
  return block && { ...cutBlock(block, range), hasData: true }
}

/** Loads the data of a block. Undefined if it was freed meanwhile. */
async function loadBlock(
  store: OrderedKeyValueStore,
  logId: string,
  { hasData, ...block }: BlockEntry,
): Promise<StoredBlock | undefined> {
  if (hasData) return block
  const { endSeqNum } = block
  const data = await store.get(dataKey(logId, endSeqNum))
  if (data !== undefined) return { ...block, data }
  if ((await store.get(blockKey(logId, endSeqNum))) === undefined) return undefined
  throw storeDamaged(`the data of a block of log ${logId} are missing`)
}

/**
 * A sequence number in the first block that ends at or after the timestamp, by bisection: timestamps ascend,
 * and an index would make every append slower.
 */
async function seqNumAt(
  store: OrderedKeyValueStore,
  logId: string,
  timestamp: number,
  tail: number,
): Promise<number> {
  let low = 0
  let high = tail
  while (low < high) {
    const middle = Math.floor((low + high) / 2)
    const [found] = await store.scan({ ...blockRange(logId, middle), limit: 1 })
    const block = found && decodeBlock(found[1])
    if (block === undefined || block.lastTimestamp >= timestamp) high = middle
    else low = block.endSeqNum
  }
  return low
}
