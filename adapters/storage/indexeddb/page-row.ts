import { concatBytes } from '../../../src/model/bytes.ts'
import type { StoredBlock } from '../../../src/storage/contract.ts'
import { corrupt } from './failures.ts'
import {
  type BlockSummary,
  blocksOf,
  earliestExpiry,
  isCount,
  type Page,
  pageOf,
  sizeInPage,
  summariesOf,
} from './page.ts'

/**
 * Chromium keeps values of 64 KiB and more in files of their own. Rows stay below that: small blocks share a page, and the data of a larger block
 * are parts, rows of a store without indexes, because many small values are written and read faster than one of a few hundred kilobytes. Beyond
 * that a file is the faster, and its space is free as soon as it is deleted, so the largest blocks are one part. Persisted: keep stable.
 */
export interface PageRow extends Page {
  readonly logId: string
  readonly lastTimestamp: number
  /** The earliest expiry of its blocks; absent is never. */
  readonly expiresAt?: number
  /** How many rows of the store `parts` hold the data of its only block; 0 when the data are here. */
  readonly parts: number
}

/** Of the blocks of one page; beside them there is room for the rest of the row. */
export const ROW_BYTES_MAX = 48 * 1024

const PART_BYTES = 60 * 1024

/** More than the largest block has. */
const PARTS_MAX = 1_024

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
  const { numbers, data } = pageOf(blocks)
  const { lastTimestamp, endSeqNum } = blocks.at(-1)!
  const expiresAt = earliestExpiry(blocks)
  const parts = data.length > ROW_BYTES_MAX ? partsOf(data) : []
  const row: PageRow = {
    logId,
    lastTimestamp,
    ...(expiresAt !== undefined && { expiresAt }),
    parts: parts.length,
    numbers,
    data: parts.length > 0 ? new Uint8Array(0) : data,
  }
  return { endSeqNum, row, parts }
}

function partsOf(data: Uint8Array): Uint8Array[] {
  if (data.length >= FILE_BYTES_MIN) return [data]
  const parts: Uint8Array[] = []
  for (let start = 0; start < data.length; start += PART_BYTES) {
    // Not a view, with which the whole buffer would be stored.
    parts.push(data.slice(start, start + PART_BYTES))
  }
  return parts
}

/** The blocks of a page with all its parts. Throws `StorageFailure` of kind `corrupt` when it is no page. */
export function blocksOfRow(row: PageRow, parts: readonly (Uint8Array | undefined)[]): StoredBlock[] {
  const { logId, numbers } = row
  const there = parts.filter((part) => part !== undefined)
  if (there.length < row.parts) throw corrupt(`a page of log ${logId} lacks a part`)
  return blocksIn(logId, { numbers, data: row.parts === 0 ? row.data : concatBytes(there) })
}

/** The blocks of a page without their data, one at least. Throws `StorageFailure` of kind `corrupt` when it is no page. */
export function summariesIn({ logId, numbers, parts }: PageRow): BlockSummary[] {
  return checked(logId, () => {
    if (numbers.length === 0) throw new RangeError('a page without a block')
    if (!(isCount(parts) && parts <= PARTS_MAX)) throw new RangeError('no number of parts')
    return summariesOf({ numbers })
  })
}

/** Throws `StorageFailure` of kind `corrupt` when it is no page. */
export function blocksIn(logId: string, page: Page): StoredBlock[] {
  return checked(logId, () => blocksOf(page))
}

function checked<Blocks>(logId: string, read: () => Blocks): Blocks {
  try {
    return read()
  } catch (error) {
    throw corrupt(`a page of log ${logId} is not whole`, error)
  }
}
