import { concatBytes } from '../../../src/model/bytes.ts'
import type { BlockSummary } from '../../../src/storage/block-collector.ts'
import { splitBlock } from '../../../src/storage/block-sizes.ts'
import type { StoredBlock } from '../../../src/storage/contract.ts'
import { corruptDatabase } from './failures.ts'
import type { PackedBlocks, PageKey, PageRow } from './schema.ts'

const NUMBERS_PER_BLOCK = 7

export const NO_BLOCKS: PackedBlocks = { numbers: new Float64Array(0), data: new Uint8Array(0) }

/** The data of a block stored elsewhere: undefined if it is missing, null if the block is not wanted. */
export type Part = Uint8Array | undefined | null

/** The bytes that a block adds to the size of a page. */
export function sizeInPage({ data }: StoredBlock): number {
  return NUMBERS_PER_BLOCK * Float64Array.BYTES_PER_ELEMENT + data.length
}

/** Copies the data, because a block may be a view of a much larger buffer. */
export function encodePage(blocks: readonly StoredBlock[]): PackedBlocks {
  const numbers = encodeNumbers(blocks)
  const data = new Uint8Array(numbers.at(-1) ?? 0)
  let start = 0
  for (const block of blocks) {
    data.set(block.data, start)
    start += block.data.length
  }
  return { numbers, data }
}

function encodeNumbers(blocks: readonly StoredBlock[]): Float64Array {
  const numbers = new Float64Array(blocks.length * NUMBERS_PER_BLOCK)
  let end = 0
  blocks.forEach((block, index) => {
    end += block.data.length
    const { firstSeqNum, endSeqNum, firstTimestamp, lastTimestamp, meteredBytes } = block
    const expiresAt = block.expiresAt ?? Number.POSITIVE_INFINITY
    numbers.set(
      [firstSeqNum, endSeqNum, firstTimestamp, lastTimestamp, meteredBytes, expiresAt, end],
      index * NUMBERS_PER_BLOCK,
    )
  })
  return numbers
}

/**
 * A page with other expiries, one per block. All pieces, of which there are some only if there is one block,
 * expire with it.
 */
export function withExpiries(row: PageRow, expiries: readonly (number | null)[]): PageRow {
  const { expiresAt: _, numbers, pieces, ...others } = row
  const earliest = pageExpiry(expiries.map((expiresAt) => ({ expiresAt })))
  const replaced = (values: Float64Array) =>
    values.map((value, i) =>
      i % NUMBERS_PER_BLOCK === 5
        ? ((pieces ? expiries[0] : expiries[Math.floor(i / NUMBERS_PER_BLOCK)]) ?? Number.POSITIVE_INFINITY)
        : value,
    )
  return {
    ...others,
    numbers: replaced(numbers),
    ...(earliest !== undefined && { expiresAt: earliest }),
    ...(pieces && { pieces: replaced(pieces) }),
  }
}

/** The blocks of a page without their data. Throws `RangeError` if the page is damaged. */
function parseSummaries({ numbers }: Pick<PackedBlocks, 'numbers'>): BlockSummary[] {
  const summaries: BlockSummary[] = []
  for (let i = 0; i < numbers.length; i += NUMBERS_PER_BLOCK) {
    const summary = parseSummary(numbers, i)
    if (summary.firstSeqNum < (summaries.at(-1)?.endSeqNum ?? 0)) {
      throw new RangeError('the blocks of the page are not in order')
    }
    summaries.push(summary)
  }
  return summaries
}

/**
 * The blocks of a page. Their data are views of the page's, or the given parts, one per block. Throws
 * `RangeError` if the page is damaged.
 */
export function parseBlocks({ numbers, data }: PackedBlocks, parts?: readonly Part[]): StoredBlock[] {
  let start = 0
  const blocks = parseSummaries({ numbers }).flatMap((summary, index) => {
    const end = numbers[index * NUMBERS_PER_BLOCK + 6]!
    const blockData = parts ? parts[index] : data.subarray(start, end)
    if (blockData !== null && blockData?.length !== end - start) {
      throw new RangeError('the data of a block is incomplete')
    }
    start = end
    return blockData ? { ...summary, data: blockData } : []
  })
  if (!parts && start !== data.length) throw new RangeError('the page has data that belongs to no block')
  return blocks
}

/** Throws `RangeError` unless all numbers are safe to calculate with. */
function parseSummary(numbers: Float64Array, i: number): BlockSummary {
  const expiresAt = numbers[i + 5]!
  const summary = {
    firstSeqNum: numbers[i]!,
    endSeqNum: numbers[i + 1]!,
    firstTimestamp: numbers[i + 2]!,
    lastTimestamp: numbers[i + 3]!,
    meteredBytes: numbers[i + 4]!,
    expiresAt: expiresAt === Number.POSITIVE_INFINITY ? null : expiresAt,
  }
  const { firstSeqNum, endSeqNum, firstTimestamp, lastTimestamp, meteredBytes } = summary
  const isValid =
    [firstSeqNum, endSeqNum, firstTimestamp, lastTimestamp, meteredBytes].every(isCount) &&
    firstSeqNum < endSeqNum &&
    (summary.expiresAt === null || Number.isFinite(expiresAt))
  if (!isValid) throw new RangeError('a block of the page has invalid numbers')
  return summary
}

/** Whether the value is a non-negative safe integer. */
function isCount(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0
}

/** The sequence number after the last record; `NaN` for an empty page. */
export function endSeqNumOf({ numbers }: Pick<PackedBlocks, 'numbers'>): number {
  return numbers[numbers.length - NUMBERS_PER_BLOCK + 1] ?? Number.NaN
}

/** The earliest expiry of the blocks; undefined if none expires. */
export function pageExpiry(blocks: readonly Pick<BlockSummary, 'expiresAt'>[]): number | undefined {
  const earliest = Math.min(...blocks.map(({ expiresAt }) => expiresAt ?? Number.POSITIVE_INFINITY))
  return earliest === Number.POSITIVE_INFINITY ? undefined : earliest
}

/** The most for the blocks of one page; leaves room for the other fields of the row. */
export const ROW_BYTES_MAX = 48 * 1024

const PART_BYTES = 60 * 1024

/** A block of this size or larger has a single part. */
const FILE_BYTES_MIN = 384 * 1024

/** More than the largest block needs. */
const PARTS_MAX = 1_024

/** A page with its parts. */
export interface PackedBlock {
  readonly endSeqNum: number
  readonly row: PageRow
  readonly parts: readonly Uint8Array[]
}

/** Packs consecutive blocks into as few pages as possible. */
export function packPages(logId: string, blocks: readonly StoredBlock[]): PackedBlock[] {
  const pages: PackedBlock[] = []
  let group: StoredBlock[] = []
  let bytes = 0
  const finish = () => {
    if (group.length > 0) pages.push(storedPage(logId, group))
    group = []
    bytes = 0
  }
  for (const block of blocks) {
    const size = sizeInPage(block)
    if (bytes + size > ROW_BYTES_MAX) finish()
    group.push(block)
    bytes += size
  }
  finish()
  return pages
}

function storedPage(logId: string, blocks: readonly StoredBlock[]): PackedBlock {
  const { lastTimestamp, endSeqNum } = blocks.at(-1)!
  const expiresAt = pageExpiry(blocks)
  const [block] = blocks
  // A large block is the only one of its page.
  const { length } = block!.data
  const isLarge = length > ROW_BYTES_MAX
  const partBytes = length < FILE_BYTES_MIN ? PART_BYTES : length
  const pieces = isLarge ? splitIntoPieces(block!, partBytes) : undefined
  const parts = isLarge ? (pieces ?? blocks).flatMap(({ data }) => splitIntoParts(data, partBytes)) : []
  const row: PageRow = {
    logId,
    lastTimestamp,
    ...(expiresAt !== undefined && { expiresAt }),
    parts: parts.length,
    ...(pieces && { pieces: encodeNumbers(pieces) }),
    ...(isLarge ? { ...NO_BLOCKS, numbers: encodeNumbers(blocks) } : encodePage(blocks)),
  }
  return { endSeqNum, row, parts }
}

function splitIntoParts(data: Uint8Array, partBytes: number): Uint8Array[] {
  const parts: Uint8Array[] = []
  for (let start = 0; start < data.length; start += partBytes) {
    // A copy: IndexedDB stores the whole buffer of a view.
    parts.push(new Uint8Array(data.subarray(start, start + partBytes)))
  }
  return parts
}

/** Splits a block into blocks that fit in one part each; undefined if it is small or cannot be split so. */
function splitIntoPieces(block: StoredBlock, partBytes: number): readonly StoredBlock[] | undefined {
  const pieces = splitBlock(block, partBytes)
  const fit = pieces.length > 1 && pieces.every(({ data }) => data.length <= partBytes)
  return fit ? pieces : undefined
}

/**
 * The blocks of a page with all its parts or, given its pieces, the wanted ones of them. Throws
 * `StorageFailure` (`corrupt`) if the page is damaged.
 */
export function assembleBlocks(
  { logId, numbers, data }: PageRow,
  pieces: Float64Array | undefined,
  parts: readonly Part[],
): StoredBlock[] {
  if (pieces) return readBlocks(logId, { numbers: pieces, data }, parts)
  return readBlocks(logId, {
    numbers,
    data: parts.length > 0 ? concatBytes(parts.filter((part) => !!part)) : data,
  })
}

/**
 * The blocks of a page, or its pieces, without their data; at least one. Throws `StorageFailure` (`corrupt`)
 * if the page is damaged.
 */
export function readSummaries({ logId, numbers, parts }: PageRow, pieces = numbers): BlockSummary[] {
  return orCorrupt(logId, () => {
    const isRow = numbers.length > 0 && isCount(parts) && parts <= PARTS_MAX
    if (!isRow || pieces.at(-1) !== numbers.at(-1)) throw new RangeError('the row of the page is invalid')
    return parseSummaries({ numbers: pieces })
  })
}

/** The blocks of a page. Throws `StorageFailure` (`corrupt`) if it is damaged. */
export function readBlocks(logId: string, page: PackedBlocks, parts?: readonly Part[]): StoredBlock[] {
  return orCorrupt(logId, () => parseBlocks(page, parts))
}

function orCorrupt<Blocks>(logId: string, read: () => Blocks): Blocks {
  try {
    return read()
  } catch (error) {
    throw corruptDatabase(`a page of log ${logId} is invalid`, error)
  }
}

/** The keys of pages or parts that end after one sequence number, and optionally not after another. */
export function pagesEnding(logId: string, after: number, until?: number): IDBKeyRange {
  // An array sorts after every number, so this includes all parts of the last page.
  return IDBKeyRange.bound([logId, after + 1], until === undefined ? [logId, []] : [logId, until, []])
}

/** The keys of the parts of one page. */
export function partsOf([logId, endSeqNum]: PageKey): IDBKeyRange {
  return IDBKeyRange.bound([logId, endSeqNum, 0], [logId, endSeqNum, []])
}
