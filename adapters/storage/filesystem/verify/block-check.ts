import type { Cipher } from '../../../../src/model/config.ts'
import { meteredBytesOf, type SequencedRecord } from '../../../../src/model/record.ts'
import { decodeRecords } from '../../../../src/storage/block-codec.ts'
import type { StoredBlock } from '../../../../src/storage/contract.ts'
import {
  decodeSegments,
  decodeSkeleton,
  isSealed,
  joinRecords,
  SEALED_FORMATS,
  type Segment,
} from '../../../../src/storage/sealed-block.ts'
import type { Place } from './findings.ts'
import type { Scan } from './scan.ts'

export type BlockFormat = 'plain' | Cipher

/** What sealed blocks begin with, and no plain one (`src/storage/sealed-block.ts`). */
const SEALED_MARK = 0x07
const EMPTY = new Uint8Array(0)

/** Holds the records of a block to what is said of it. Throws `RangeError` when they do not agree. */
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
    throw new RangeError('a block is sealed with several ciphers')
  }
  return cipher
}

/** Counts a block of which nothing is known but what it says, and holds its records to that. */
export function checkUnplaced(scan: Scan, block: StoredBlock, place: Place): void {
  scan.blocks++
  scan.records += block.endSeqNum - block.firstSeqNum
  try {
    checkBlock(block)
  } catch (error) {
    scan.findings.failure(place, error)
  }
}

/** Throws `RangeError` for a block that is encrypted otherwise than those of its log before: nobody could read both. */
export function checkFormat({ formats }: Scan, log: number, format: BlockFormat): void {
  const before = formats.get(log)
  if (before === undefined) formats.set(log, format)
  else if (before !== format)
    throw new RangeError(`a block is ${format}, and others of its log are ${before}`)
}

function checkPositions(block: StoredBlock, records: readonly SequencedRecord[]): void {
  const count = block.endSeqNum - block.firstSeqNum
  if (records.length !== count) {
    throw new RangeError(`a block of ${count} records holds ${records.length}`)
  }
  let seqNum = block.firstSeqNum
  let timestamp = block.firstTimestamp
  for (const record of records) {
    if (record.seqNum !== seqNum) throw new RangeError(`record ${seqNum} has the number ${record.seqNum}`)
    if (record.timestamp < timestamp) throw new RangeError(`record ${seqNum} is older than what is before it`)
    seqNum++
    timestamp = record.timestamp
  }
  if (records[0]!.timestamp !== block.firstTimestamp || timestamp !== block.lastTimestamp) {
    throw new RangeError('the records of a block have other timestamps than it says')
  }
}

function checkMetered({ meteredBytes }: StoredBlock, found: number): void {
  if (found !== meteredBytes) {
    throw new RangeError(`a block of ${meteredBytes} metered bytes has records of ${found}`)
  }
}

/** The records of an append as far as they are in plain text. What is sealed has the length that its metered size leaves room for. */
function recordsOf(segment: Segment): SequencedRecord[] {
  const records = decodeSkeleton(segment.skeleton)
  const { sealed, cipher, meteredBytes } = segment
  if (sealed === undefined) return joinRecords(records, EMPTY, meteredBytes)
  const ordinary = records.filter(isSealed).length
  const commands = records.filter((record) => !isSealed(record))
  const plaintextBytes = sealed.ciphertext.length - SEALED_FORMATS[cipher].tagBytes
  const content = meteredBytes - sumOf(commands.map(({ headers, body }) => meteredBytesOf(headers, body)))
  // A record has 8 metered bytes and its content, of which none can be missing in the plaintext.
  if (ordinary === 0 || content < 8 * ordinary || content - 8 * ordinary > plaintextBytes) {
    throw new RangeError('what is sealed has another length than its records')
  }
  return records
}

function sumOf(numbers: readonly number[]): number {
  return numbers.reduce((sum, number) => sum + number, 0)
}
