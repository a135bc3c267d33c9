import type { StoredBlock } from '../../../src/storage/contract.ts'
import { splitBlock } from '../../../src/storage/split-block.ts'
import { EMPTY_PAGE, earliestExpiry, numbersOf, pageOf, sizeInPage } from './page.ts'
import { type PageRow, ROW_BYTES_MAX } from './page-row.ts'

const PART_BYTES = 60 * 1024

/** What is at least as large is one part. */
const FILE_BYTES_MIN = 384 * 1024

/** A page as it is stored: under the sequence number behind its last record. */
export interface StoredPage {
  readonly endSeqNum: number
  readonly row: PageRow
  readonly parts: readonly Uint8Array[]
}

/** Consecutive blocks in as few pages as possible. */
export function pagesOf(logId: string, blocks: readonly StoredBlock[]): StoredPage[] {
  const pages: StoredPage[] = []
  let gathered: StoredBlock[] = []
  let bytes = 0
  const finish = () => {
    if (gathered.length > 0) pages.push(storedPage(logId, gathered))
    gathered = []
    bytes = 0
  }
  for (const block of blocks) {
    const size = sizeInPage(block)
    if (bytes + size > ROW_BYTES_MAX) finish()
    gathered.push(block)
    bytes += size
  }
  finish()
  return pages
}

function storedPage(logId: string, blocks: readonly StoredBlock[]): StoredPage {
  const { lastTimestamp, endSeqNum } = blocks.at(-1)!
  const expiresAt = earliestExpiry(blocks)
  const [block] = blocks
  // What is as large has no others beside it.
  const { length } = block!.data
  const isLarge = length > ROW_BYTES_MAX
  const partBytes = length < FILE_BYTES_MIN ? PART_BYTES : length
  const pieces = isLarge ? piecesOf(block!, partBytes) : undefined
  const parts = isLarge ? (pieces ?? blocks).flatMap(({ data }) => partsOf(data, partBytes)) : []
  const row: PageRow = {
    logId,
    lastTimestamp,
    ...(expiresAt !== undefined && { expiresAt }),
    parts: parts.length,
    ...(pieces && { pieces: numbersOf(pieces) }),
    ...(isLarge ? { ...EMPTY_PAGE, numbers: numbersOf(blocks) } : pageOf(blocks)),
  }
  return { endSeqNum, row, parts }
}

function partsOf(data: Uint8Array, partBytes: number): Uint8Array[] {
  const parts: Uint8Array[] = []
  for (let start = 0; start < data.length; start += partBytes) {
    // Not a view, with which the whole buffer would be stored.
    parts.push(new Uint8Array(data.subarray(start, start + partBytes)))
  }
  return parts
}

/** The blocks that one is stored as, each with no more data than a part; undefined when it has to stay one, or is as small. */
function piecesOf(block: StoredBlock, partBytes: number): readonly StoredBlock[] | undefined {
  const pieces = splitBlock(block, partBytes)
  const areParts = pieces.length > 1 && pieces.every(({ data }) => data.length <= partBytes)
  return areParts ? pieces : undefined
}
