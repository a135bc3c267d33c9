import type { StoredBlock } from '../../../src/storage/contract.ts'

/**
 * Blocks of one log, ascending, as two buffers: a browser copies those faster than objects, and they take less room. Persisted: keep
 * stable.
 */
export interface Page {
  /** For each block its first and end sequence number, first and last timestamp, metered bytes, expiry (infinite: never), and where its data ends. */
  readonly numbers: Float64Array
  /** The data of the blocks, one after another. */
  readonly data: Uint8Array
}

const NUMBERS = 7

export const EMPTY_PAGE: Page = { numbers: new Float64Array(0), data: new Uint8Array(0) }

/** What a block adds to the size of a page. */
export function sizeInPage({ data }: StoredBlock): number {
  return NUMBERS * Float64Array.BYTES_PER_ELEMENT + data.length
}

/** Copies the data: what a block is a view of may be larger by far. */
export function pageOf(blocks: readonly StoredBlock[]): Page {
  const numbers = numbersOf(blocks)
  const data = new Uint8Array(numbers.at(-1) ?? 0)
  let start = 0
  for (const block of blocks) {
    data.set(block.data, start)
    start += block.data.length
  }
  return { numbers, data }
}

export function numbersOf(blocks: readonly StoredBlock[]): Float64Array {
  const numbers = new Float64Array(blocks.length * NUMBERS)
  let end = 0
  blocks.forEach((block, index) => {
    end += block.data.length
    numbers[index * NUMBERS] = block.firstSeqNum
    numbers[index * NUMBERS + 1] = block.endSeqNum
    numbers[index * NUMBERS + 2] = block.firstTimestamp
    numbers[index * NUMBERS + 3] = block.lastTimestamp
    numbers[index * NUMBERS + 4] = block.meteredBytes
    numbers[index * NUMBERS + 5] = block.expiresAt ?? Number.POSITIVE_INFINITY
    numbers[index * NUMBERS + 6] = end
  })
  return numbers
}

/** A block without its data. */
export type BlockSummary = Omit<StoredBlock, 'data'>

/** The blocks of a page without their data. Throws `RangeError` when it is no page. */
export function summariesOf({ numbers }: Pick<Page, 'numbers'>): BlockSummary[] {
  const summaries: BlockSummary[] = []
  for (let i = 0; i < numbers.length; i += NUMBERS) {
    const summary = summaryAt(numbers, i)
    if (summary.firstSeqNum < (summaries.at(-1)?.endSeqNum ?? 0)) {
      throw new RangeError('a page whose blocks are not in order')
    }
    summaries.push(summary)
  }
  return summaries
}

/**
 * The blocks are views of the page's data, or have the parts that are given instead: one for each block, null to leave it out. Throws `RangeError` when
 * it is no page.
 */
export function blocksOf({ numbers, data }: Page, parts?: readonly Part[]): StoredBlock[] {
  let start = 0
  const blocks = summariesOf({ numbers }).flatMap((summary, index) => {
    const end = numbers[index * NUMBERS + 6]!
    const own = parts ? parts[index] : data.subarray(start, end)
    if (own?.length !== end - start && own !== null)
      throw new RangeError('a page without the data of its blocks')
    start = end
    return own ? { ...summary, data: own } : []
  })
  if (!parts && start !== data.length) throw new RangeError('a page with data of no block')
  return blocks
}

/** Undefined when it is not there, null when it is not wanted. */
export type Part = Uint8Array | undefined | null

/** Throws `RangeError` when it is no block: what is computed with later must not be a fraction, or nothing. */
function summaryAt(numbers: Float64Array, i: number): BlockSummary {
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
  const isBlock =
    [firstSeqNum, endSeqNum, firstTimestamp, lastTimestamp, meteredBytes].every(isCount) &&
    firstSeqNum < endSeqNum &&
    (summary.expiresAt === null || Number.isFinite(expiresAt))
  if (!isBlock) throw new RangeError('a page with a block that is none')
  return summary
}

/** Whether it is an integer that numbers hold exactly, and not negative. */
export function isCount(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0
}

/** Behind its last record. */
export function endSeqNumOf({ numbers }: Pick<Page, 'numbers'>): number {
  return numbers[numbers.length - NUMBERS + 1] ?? Number.NaN
}

/** When the first of the blocks expires; undefined is never. */
export function earliestExpiry(blocks: readonly BlockSummary[]): number | undefined {
  const earliest = Math.min(...blocks.map(({ expiresAt }) => expiresAt ?? Number.POSITIVE_INFINITY))
  return earliest === Number.POSITIVE_INFINITY ? undefined : earliest
}
