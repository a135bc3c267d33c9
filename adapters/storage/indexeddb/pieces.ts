import type { StoredBlock } from '../../../src/storage/contract.ts'
import { splitBlock } from '../../../src/storage/split-block.ts'

/** The blocks that one is stored as, each with no more data than a part; undefined when it has to stay one, or is as small. */
export function piecesOf(block: StoredBlock, partBytes: number): readonly StoredBlock[] | undefined {
  const pieces = splitBlock(block, partBytes)
  const areParts = pieces.length > 1 && pieces.every(({ data }) => data.length <= partBytes)
  return areParts ? pieces : undefined
}
