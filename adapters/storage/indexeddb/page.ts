import type { StoredBlock } from '../../../src/storage/contract.ts'
import type { Page } from './schema.ts'

const NUMBERS_PER_BLOCK = 7

export const EMPTY_PAGE: Page = { numbers: new Float64Array(0), data: new Uint8Array(0) }

/** A block without its data. */
export type BlockSummary = Omit<StoredBlock, 'data'>

/** The data of a block stored elsewhere: undefined if it is missing, null if the block is not wanted. */
export type Part = Uint8Array | undefined | null

/** What a block adds to the size of a page, in bytes. */
export function sizeInPage({ data }: StoredBlock): number {
  return NUMBERS_PER_BLOCK * Float64Array.BYTES_PER_ELEMENT + data.length
}

/** Copies the data, because a block may be a view of a much larger buffer. */
export function encodePage(blocks: readonly StoredBlock[]): Page {
  const numbers = encodeNumbers(blocks)
  const data = new Uint8Array(numbers.at(-1) ?? 0)
  let start = 0
  for (const block of blocks) {
    data.set(block.data, start)
    start += block.data.length
  }
  return { numbers, data }
}

export function encodeNumbers(blocks: readonly StoredBlock[]): Float64Array {
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

/** The blocks of a page without their data. Throws `RangeError` if the page is damaged. */
export function parseSummaries({ numbers }: Pick<Page, 'numbers'>): BlockSummary[] {
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
export function parseBlocks({ numbers, data }: Page, parts?: readonly Part[]): StoredBlock[] {
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
export function isCount(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0
}

/** The sequence number after the last record; `NaN` for an empty page. */
export function endSeqNumOf({ numbers }: Pick<Page, 'numbers'>): number {
  return numbers[numbers.length - NUMBERS_PER_BLOCK + 1] ?? Number.NaN
}

/** The earliest expiry of the blocks; undefined if none expires. */
export function earliestExpiry(blocks: readonly BlockSummary[]): number | undefined {
  const earliest = Math.min(...blocks.map(({ expiresAt }) => expiresAt ?? Number.POSITIVE_INFINITY))
  return earliest === Number.POSITIVE_INFINITY ? undefined : earliest
}
