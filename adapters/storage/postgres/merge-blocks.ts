import type { AppendRequest, StoredBlock } from '../../../src/storage/contract.ts'
import { mergeableAppends, mergedBlock } from '../../../src/storage/merge-blocks.ts'
import { joinBytes } from './group-memory.ts'

/** A row of blocks: the records of one append, or of several. */
export interface BlockRow extends StoredBlock {
  /** The last append in the block. */
  readonly appendId: string
}

/** Joins the blocks of consecutive appends, as far as the contract allows. */
export function mergeBlocks(requests: readonly AppendRequest[]): BlockRow[] {
  return mergeableAppends(requests).map((group) => {
    const block = mergedBlock(
      group.map(({ block }) => block),
      joinBytes,
    )
    return { ...block, appendId: group.at(-1)!.head.appendId }
  })
}
