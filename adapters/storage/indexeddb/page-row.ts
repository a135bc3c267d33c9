import { concatBytes } from '../../../src/model/bytes.ts'
import type { StoredBlock } from '../../../src/storage/contract.ts'
import { corrupt } from './failures.ts'
import { type BlockSummary, blocksOf, isCount, type Page, type Part, summariesOf } from './page.ts'

/**
 * Chromium keeps values of 64 KiB and more in files of their own. Rows stay below that: small blocks share a page, and the data of a larger block
 * are parts, rows of a store without indexes, because many small values are written and read faster than one of a few hundred kilobytes. Beyond
 * that a file is the faster, and its space is free as soon as it is deleted, so the largest blocks are one part.
 *
 * A block is cut between records, where it can be: each part is then a block of its own, which nobody has to copy into one with the others, and a read
 * takes only those that it wants. Persisted: keep stable.
 */
export interface PageRow extends Page {
  readonly logId: string
  readonly lastTimestamp: number
  /** The earliest expiry of its blocks; absent is never. */
  readonly expiresAt?: number
  /** How many rows of the store `parts` hold the data of its only block; 0 when the data are here. */
  readonly parts: number
  /** The numbers of the blocks that the only one was split into, of which each has one part; absent when parts are no blocks. */
  readonly pieces?: Float64Array
}

/** Of the blocks of one page; beside them there is room for the rest of the row. */
export const ROW_BYTES_MAX = 48 * 1024

/** More than the largest block has. */
const PARTS_MAX = 1_024

/**
 * The blocks of a page with all its parts or, when its pieces are given, those of them that are wanted. Throws `StorageFailure` of kind `corrupt` when it
 * is no page.
 */
export function blocksOfRow(
  { logId, numbers, data }: PageRow,
  pieces: Float64Array | undefined,
  parts: readonly Part[],
): StoredBlock[] {
  if (pieces) return blocksIn(logId, { numbers: pieces, data }, parts)
  return blocksIn(logId, {
    numbers,
    data: parts.length > 0 ? concatBytes(parts.filter((part) => !!part)) : data,
  })
}

/** The blocks of a page, or its pieces, without their data, one at least. Throws `StorageFailure` of kind `corrupt` when it is no page. */
export function summariesIn({ logId, numbers, parts }: PageRow, pieces = numbers): BlockSummary[] {
  return checked(logId, () => {
    const isRow = numbers.length > 0 && isCount(parts) && parts <= PARTS_MAX
    if (!isRow || pieces.at(-1) !== numbers.at(-1)) throw new RangeError('no row of a page')
    return summariesOf({ numbers: pieces })
  })
}

/** Throws `StorageFailure` of kind `corrupt` when it is no page. */
export function blocksIn(logId: string, page: Page, parts?: readonly Part[]): StoredBlock[] {
  return checked(logId, () => blocksOf(page, parts))
}

function checked<Blocks>(logId: string, read: () => Blocks): Blocks {
  try {
    return read()
  } catch (error) {
    throw corrupt(`a page of log ${logId} is not whole`, error)
  }
}
