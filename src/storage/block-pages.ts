import { BlockReader, TAG_RECORD } from './block-codec.ts'
import type { ReadRange, StoredBlock } from './contract.ts'
import { lowerBound } from './ordered-list.ts'
import { blockOf, positionAt, type RecordSpan, readSpan } from './record-spans.ts'

/** Consecutive records of a block, whose bytes can be read without the rest of its data. */
export interface BlockPage {
  /** Offset in the block's data. */
  readonly offset: number
  /** Length in the block's data. */
  readonly bytes: number
  /** Sequence number of the first record. */
  readonly firstSeqNum: number
  /** Exclusive. */
  readonly endSeqNum: number
  /** Timestamp of the last record. */
  readonly lastTimestamp: number
}

/**
 * Divides a block into pages of at least `pageBytes` bytes, except the last. Visits the records without
 * decoding them. Returns a single page if the block cannot be divided, because it is encrypted or does not
 * match its metadata.
 */
export function pagesOf(block: StoredBlock, pageBytes: number): readonly BlockPage[] {
  return (block.data.length > pageBytes ? dividedPages(block, pageBytes) : undefined) ?? [onlyPageOf(block)]
}

function onlyPageOf({ data, firstSeqNum, endSeqNum, lastTimestamp }: StoredBlock): BlockPage {
  return { offset: 0, bytes: data.length, firstSeqNum, endSeqNum, lastTimestamp }
}

function dividedPages(block: StoredBlock, pageBytes: number): BlockPage[] | undefined {
  const { data } = block
  const pages: BlockPage[] = []
  let offset = 0
  let firstSeqNum = block.firstSeqNum
  let seqNum = firstSeqNum
  try {
    const reader = new BlockReader(data)
    while (reader.offset < data.length) {
      const start = reader.offset
      if (reader.byte() !== TAG_RECORD) return undefined
      const end = reader.end()
      reader.offset = end
      seqNum++
      if (end - offset < pageBytes && end < data.length) continue
      const last = positionAt(data, start)
      if (last.seqNum !== seqNum - 1) return undefined
      pages.push({
        offset,
        bytes: end - offset,
        firstSeqNum,
        endSeqNum: seqNum,
        lastTimestamp: last.timestamp,
      })
      offset = end
      firstSeqNum = seqNum
    }
  } catch {
    return undefined
  }
  return seqNum === block.endSeqNum ? pages : undefined
}

/** The beginning of a block without its data. */
type BlockRange = Pick<StoredBlock, 'firstSeqNum' | 'endSeqNum' | 'firstTimestamp' | 'meteredBytes'>

/** Whether a read that begins with this block wants only some of its records. */
export function wantsPart(block: BlockRange, range: ReadRange): boolean {
  if (range.unsplit) return false
  const { from, endSeqNum, bytesMax, recordsMax = Number.POSITIVE_INFINITY } = range
  const beginsLater =
    'seqNum' in from ? from.seqNum > block.firstSeqNum : from.timestamp > block.firstTimestamp
  return (
    beginsLater ||
    endSeqNum < block.endSeqNum ||
    recordsMax < block.endSeqNum - block.firstSeqNum ||
    bytesMax < block.meteredBytes
  )
}

/** Returns the pages that contain what a read wants. There are none if the read ends before the block. */
export function wantedPages<Page extends BlockPage>(
  pages: readonly Page[],
  range: ReadRange,
): readonly Page[] {
  const { from, endSeqNum, recordsMax = Number.POSITIVE_INFINITY } = range
  const first = lowerBound(pages, (page) =>
    'seqNum' in from ? page.endSeqNum > from.seqNum : page.lastTimestamp >= from.timestamp,
  )
  if (first === pages.length) return []
  // By timestamp, the first wanted record may be any of the page, so its last one is assumed.
  const start =
    'seqNum' in from ? Math.max(from.seqNum, pages[first]!.firstSeqNum) : pages[first]!.endSeqNum - 1
  const end = Math.min(start + recordsMax, endSeqNum)
  let after = first + 1
  while (after < pages.length && pages[after]!.firstSeqNum < end) after++
  return pages.slice(first, after)
}

/**
 * Returns the records of `data` that a read wants, as a block with views of the data: from its first record
 * to the one that reaches a limit. `data` contains whole records, the first one with `firstSeqNum`. Undefined
 * if there are none, or if they are not the ones expected.
 */
export function cutRecords(
  data: Uint8Array,
  firstSeqNum: number,
  expiresAt: number | null,
  { from, endSeqNum, bytesMax, recordsMax = Number.POSITIVE_INFINITY }: ReadRange,
): StoredBlock | undefined {
  const spans: RecordSpan[] = []
  let meteredBytes = 0
  try {
    const reader = new BlockReader(data)
    for (let seqNum = firstSeqNum; reader.offset < data.length && seqNum < endSeqNum; seqNum++) {
      const start = reader.offset
      if (reader.byte() !== TAG_RECORD) return undefined
      const end = reader.end()
      if ('seqNum' in from && seqNum < from.seqNum) {
        reader.offset = end
        continue
      }
      const span = readSpan(reader, start, end)
      if (span.seqNum !== seqNum) return undefined
      if ('timestamp' in from && spans.length === 0 && span.timestamp < from.timestamp) continue
      spans.push(span)
      meteredBytes += span.meteredBytes
      if (meteredBytes >= bytesMax || spans.length >= recordsMax) break
    }
  } catch {
    return undefined
  }
  return spans.length === 0 ? undefined : blockOf(data, spans, expiresAt)
}

/** Smaller blocks are not worth searching for a record. */
const CUT_BYTES_MIN = 4_096

/**
 * Returns the records that a read wants of the block that it begins with, with views of its data; the block
 * itself if it is small or cannot be cut.
 */
export function cutBlock(block: StoredBlock, range: ReadRange): StoredBlock {
  const isCut = block.data.length > CUT_BYTES_MIN && wantsPart(block, range)
  return (isCut && cutRecords(block.data, block.firstSeqNum, block.expiresAt, range)) || block
}
