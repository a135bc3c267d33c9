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

export function sizeOfPage({ numbers, data }: Page): number {
  return numbers.byteLength + data.length
}

/** Copies the data: what a block is a view of may be larger by far. */
export function pageOf(blocks: readonly StoredBlock[]): Page {
  const numbers = new Float64Array(blocks.length * NUMBERS)
  const data = new Uint8Array(blocks.reduce((sum, block) => sum + block.data.length, 0))
  let end = 0
  blocks.forEach((block, index) => {
    data.set(block.data, end)
    end += block.data.length
    numbers[index * NUMBERS] = block.firstSeqNum
    numbers[index * NUMBERS + 1] = block.endSeqNum
    numbers[index * NUMBERS + 2] = block.firstTimestamp
    numbers[index * NUMBERS + 3] = block.lastTimestamp
    numbers[index * NUMBERS + 4] = block.meteredBytes
    numbers[index * NUMBERS + 5] = block.expiresAt ?? Number.POSITIVE_INFINITY
    numbers[index * NUMBERS + 6] = end
  })
  return { numbers, data }
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

/** The blocks are views of the page's data. Throws `RangeError` when it is no page. */
export function blocksOf({ numbers, data }: Page): StoredBlock[] {
  let start = 0
  const blocks = summariesOf({ numbers }).map((summary, index) => {
    const end = numbers[index * NUMBERS + 6]!
    if (!(Number.isInteger(end) && end >= start && end <= data.length)) {
      throw new RangeError('a page whose blocks are not in its data')
    }
    const block = { ...summary, data: data.subarray(start, end) }
    start = end
    return block
  })
  if (start !== data.length) throw new RangeError('a page with data of no block')
  return blocks
}

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
    isCount(firstSeqNum) &&
    isCount(endSeqNum) &&
    firstSeqNum < endSeqNum &&
    isCount(firstTimestamp) &&
    isCount(lastTimestamp) &&
    isCount(meteredBytes) &&
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

/** Of its blocks. */
export function meteredBytesIn({ numbers }: Pick<Page, 'numbers'>): number {
  let sum = 0
  for (let i = 4; i < numbers.length; i += NUMBERS) sum += numbers[i]!
  return sum
}

/** When the first of the blocks expires; undefined is never. */
export function earliestExpiry(blocks: readonly BlockSummary[]): number | undefined {
  const earliest = Math.min(...blocks.map(({ expiresAt }) => expiresAt ?? Number.POSITIVE_INFINITY))
  return earliest === Number.POSITIVE_INFINITY ? undefined : earliest
}
