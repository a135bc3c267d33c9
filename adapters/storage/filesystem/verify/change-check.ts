import { extendedExpiry } from '../../../../src/core/retention.ts'
import type { Head } from '../../../../src/storage/contract.ts'
import { lowerBound } from '../../../../src/storage/ordered-list.ts'
import type { Change } from '../state/change.ts'
import type { JournalBlock, Log } from '../state/log.ts'
import { earliestExpiry, type FreedRange, type Run } from '../state/segment.ts'
import type { State } from '../state/state.ts'
import { checkDocument } from './document-check.ts'

/**
 * Checks a change against the state before it, beyond what applying it requires. Throws `RangeError` if it
 * does not fit.
 */
export function checkChange(state: State, change: Change): void {
  switch (change.kind) {
    case 'append': {
      const log = state.logs.withNumber(change.log)
      if (log !== undefined) checkAppend(log, change)
      return
    }
    case 'put':
      if (change.version < state.nextVersion) {
        throw new RangeError(`document version ${change.version} was used before`)
      }
      checkDocument(change)
      return
    case 'delete':
      // Deleting a missing document is never recorded.
      if (state.catalog.versionOf(change.collection, change.key) === null) {
        throw new RangeError(`a deleted document of ${change.collection} does not exist`)
      }
      return
    case 'create-log':
      if (change.log < state.nextLog) throw new RangeError(`log number ${change.log} was used before`)
      if (state.logs.withId(change.id) !== undefined) throw new RangeError(`log ${change.id} already exists`)
      return
    case 'extend':
      if (change.extensions.length > EXTENSIONS_MAX) {
        throw new RangeError(`${change.extensions.length} extensions of the retention are recorded`)
      }
      return
    case 'free': {
      const log = state.logs.withNumber(change.log)
      if (log !== undefined) checkFree(log, change.ranges)
      return
    }
    case 'compact':
      if (change.runs.some(({ run }) => run.segment !== change.segment.number)) {
        throw new RangeError('a compacted run is in another segment')
      }
  }
}

/**
 * Throws `RangeError` if blocks are freed that are neither trimmed nor expired, which loses acknowledged
 * records.
 */
function checkFree(log: Log, ranges: readonly FreedRange[]): void {
  for (const range of ranges) {
    const run = log.runs[lowerBound(log.runs, ({ endSeqNum }) => endSeqNum > range.from)]
    if (run === undefined || run.firstSeqNum > range.from) checkBlocks(log, range)
    else checkPart(log, run, range)
  }
}

/** Blocks in journals are counted by their frames, so everything can be compared. */
function checkBlocks({ head, blocks }: Log, range: FreedRange): void {
  const start = lowerBound(blocks, ({ endSeqNum }) => endSeqNum > range.from)
  const end = lowerBound(blocks, ({ firstSeqNum }) => firstSeqNum >= range.to)
  const freed = blocks.slice(start, end)
  const meteredBytes = freed.reduce((sum, block) => sum + block.meteredBytes, 0)
  const isWhole = freed[0]?.firstSeqNum === range.from && freed.at(-1)?.endSeqNum === range.to
  if (!isWhole || freed.length !== range.blocks || meteredBytes !== range.meteredBytes) {
    const found = `${freed.length} blocks with ${meteredBytes}`
    throw new RangeError(
      `the freed range from ${range.from} to ${range.to} counts ${range.blocks} blocks ` +
        `with ${range.meteredBytes} metered bytes, but has ${found}`,
    )
  }
  const isKept = (block: JournalBlock): boolean =>
    extendedExpiry(block, head.extensions) === null && block.endSeqNum > head.trimPoint
  if (freed.some(isKept)) throw lost(range)
}

/** The number of blocks is checked when the run is read. */
function checkPart({ head }: Log, run: Run, range: FreedRange): void {
  if (range.to > run.endSeqNum) {
    throw new RangeError(`the freed range ends at ${range.to}, after the end of its run at ${run.endSeqNum}`)
  }
  const neverExpires = earliestExpiry(run, head.extensions) === Number.POSITIVE_INFINITY
  if (range.to > head.trimPoint && neverExpires) throw lost(range)
}

function lost({ from, to }: FreedRange): RangeError {
  return new RangeError(`the freed range from ${from} to ${to} neither expires nor was trimmed`)
}

const TRIMS_MAX = 3
const EXTENSIONS_MAX = 4

/** Checks that a head is consistent. Throws `RangeError` if it is not. */
export function checkHead({ tail, trimPoint, trims }: Head): void {
  if (trimPoint > tail.seqNum) {
    throw new RangeError(`trim point ${trimPoint} is beyond the tail ${tail.seqNum}`)
  }
  if (trims.length > TRIMS_MAX) throw new RangeError(`${trims.length} trims are recorded`)
  let before = 0
  for (const { point } of trims) {
    if (point < before || point > trimPoint) {
      throw new RangeError(`the trim to ${point} follows one to ${before}, with trim point ${trimPoint}`)
    }
    before = point
  }
}

/**
 * Checks that an append continues at the head of its log, and that its head follows its block. Throws
 * `RangeError` if not.
 */
function checkAppend({ head: before }: Log, change: Extract<Change, { kind: 'append' }>): void {
  const { block, head } = change
  if (block.firstSeqNum !== before.tail.seqNum) {
    throw new RangeError(`a block begins at ${block.firstSeqNum}, but the tail is ${before.tail.seqNum}`)
  }
  if (block.firstTimestamp < before.tail.timestamp) {
    throw new RangeError(`a block begins at time ${block.firstTimestamp}, before ${before.tail.timestamp}`)
  }
  const { seqNum, timestamp } = head.tail
  if (seqNum !== block.endSeqNum || timestamp !== block.lastTimestamp) {
    throw new RangeError(
      `the tail is ${seqNum} at ${timestamp}, but the block ends with ${block.endSeqNum} at ${block.lastTimestamp}`,
    )
  }
  if (head.epoch !== before.epoch) {
    throw new RangeError(`an append has epoch ${head.epoch}, but its log has epoch ${before.epoch}`)
  }
  if (before.writeState?.closed) throw new RangeError('an append follows the one that closed the stream')
  for (const { id, end } of change.writeState?.producers ?? []) {
    if (end.seqNum <= seqNum) continue
    throw new RangeError(`the producer ${id} has appended up to ${end.seqNum}, beyond the tail ${seqNum}`)
  }
  if (head.trimPoint < before.trimPoint) {
    throw new RangeError(`trim point ${before.trimPoint} moves back to ${head.trimPoint}`)
  }
  checkHead(head)
}
