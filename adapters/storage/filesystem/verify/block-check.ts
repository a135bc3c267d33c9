import { meteredBytesOf, type SequencedRecord } from '../../../../src/model/record.ts'
import { decodeRecords } from '../../../../src/storage/block-codec.ts'
import type { StoredBlock } from '../../../../src/storage/contract.ts'
import {
  decodeSegments,
  decodeSkeleton,
  isSealed,
  joinRecords,
  SEALED_FORMATS,
  type SealedSegment,
} from '../../../../src/storage/sealed-block.ts'
import { blockPages, type FrameHead } from '../files/frame.ts'
import type { Place } from './report.ts'
import type { BlockFormat, Scan } from './scan.ts'

/** The first byte of a sealed block, which no plain block begins with (`src/storage/sealed-block.ts`). */
const SEALED_MARK = 0x07
const EMPTY = new Uint8Array(0)

/**
 * Checks that the records of a block match its metadata, and returns how they are encrypted. Throws
 * `RangeError` if they do not.
 */
export function checkBlock(block: StoredBlock): BlockFormat {
  if (block.endSeqNum <= block.firstSeqNum) throw new RangeError('a block without records')
  if (block.data[0] !== SEALED_MARK) {
    const records = decodeRecords(block.data)
    checkPositions(block, records)
    checkMetered(block, sumOf(records.map(({ headers, body }) => meteredBytesOf(headers, body))))
    return 'plain'
  }
  const segments = decodeSegments(block.data)
  checkPositions(block, segments.flatMap(recordsOf))
  checkMetered(block, sumOf(segments.map(({ meteredBytes }) => meteredBytes)))
  const { cipher } = segments[0]!
  if (segments.some((segment) => segment.cipher !== cipher)) {
    throw new RangeError('a block uses several ciphers')
  }
  return cipher
}

/** Throws `RangeError` unless the page table of a frame locates the records of its only block. */
export function checkPageTable({ pages }: FrameHead, blocks: readonly StoredBlock[]): void {
  const [block] = blocks
  if (block === undefined || blocks.length > 1) {
    if (pages.length > 1) throw new RangeError('a frame of several blocks has several pages')
    return
  }
  for (const { offset, bytes, firstSeqNum, endSeqNum, lastTimestamp } of blockPages(pages, block)) {
    if (pages.length === 1) return
    const records = decodeRecords(block.data.subarray(offset, offset + bytes))
    const [first, last] = [records[0], records.at(-1)]
    const isSame =
      first?.seqNum === firstSeqNum && last?.seqNum === endSeqNum - 1 && last.timestamp === lastTimestamp
    if (!isSame) throw new RangeError('the page table of a frame does not match its records')
  }
}

/** Counts a block that nothing refers to, and checks its records against its own metadata. */
export function checkUnplaced(scan: Scan, block: StoredBlock, place: Place): void {
  scan.blocks++
  scan.records += block.endSeqNum - block.firstSeqNum
  try {
    checkBlock(block)
  } catch (error) {
    scan.findings.failure(place, error)
  }
}

/** Throws `RangeError` if earlier blocks of the log are encrypted differently: no reader could read both. */
export function checkFormat({ formats }: Scan, log: number, format: BlockFormat): void {
  const before = formats.get(log)
  if (before === undefined) formats.set(log, format)
  else if (before !== format) throw new RangeError(`a block is ${format}, but its log is ${before}`)
}

function checkPositions(block: StoredBlock, records: readonly SequencedRecord[]): void {
  const count = block.endSeqNum - block.firstSeqNum
  if (records.length !== count) {
    throw new RangeError(`a block has ${records.length} records; expected ${count}`)
  }
  let seqNum = block.firstSeqNum
  let timestamp = block.firstTimestamp
  for (const record of records) {
    if (record.seqNum !== seqNum)
      throw new RangeError(`record ${seqNum} has sequence number ${record.seqNum}`)
    if (record.timestamp < timestamp) throw new RangeError(`record ${seqNum} is older than the one before it`)
    seqNum++
    timestamp = record.timestamp
  }
  if (records[0]!.timestamp !== block.firstTimestamp || timestamp !== block.lastTimestamp) {
    throw new RangeError('the timestamps of a block do not match its records')
  }
}

function checkMetered({ meteredBytes }: StoredBlock, found: number): void {
  if (found !== meteredBytes) {
    throw new RangeError(`a block has ${found} metered bytes; expected ${meteredBytes}`)
  }
}

/**
 * The records of an append as far as they are in plain text. Checks the length of the ciphertext against the
 * metered size.
 */
function recordsOf(segment: SealedSegment): SequencedRecord[] {
  const records = decodeSkeleton(segment.skeleton)
  const { sealed, cipher, meteredBytes } = segment
  if (sealed === undefined) return joinRecords(records, EMPTY, meteredBytes)
  const ordinary = records.filter(isSealed).length
  const commands = records.filter((record) => !isSealed(record))
  const plaintextBytes = sealed.ciphertext.length - SEALED_FORMATS[cipher].tagBytes
  const content = meteredBytes - sumOf(commands.map(({ headers, body }) => meteredBytesOf(headers, body)))
  // A record meters as 8 bytes plus its content, which the plaintext contains completely.
  if (ordinary === 0 || content < 8 * ordinary || content - 8 * ordinary > plaintextBytes) {
    throw new RangeError('the length of the ciphertext does not match its records')
  }
  return records
}

function sumOf(numbers: readonly number[]): number {
  return numbers.reduce((sum, number) => sum + number, 0)
}
