import type { JournalBlock, Log } from '../log.ts'
import type { Run } from '../run.ts'
import type { Place } from './findings.ts'
import type { Scan } from './scan.ts'

/** Holds where the blocks of each log lie, and what its head says, to each other. */
export function checkLogs(scan: Scan): void {
  for (const log of scan.state.logsByNumber.values()) {
    const place = scan.logPlaces.get(log.number)!
    try {
      checkOrder(scan, log, place)
      checkMeasure(log)
    } catch (error) {
      scan.findings.failure(place, error, log.id)
    }
  }
}

function checkOrder(scan: Scan, { number, id, head, runs, blocks }: Log, place: Place): void {
  const { tail, trimPoint } = head
  let end = 0
  let timestamp = 0
  let missing = scan.missing.get(number) ?? 0
  const gap = (from: number, to: number): void => {
    missing += Math.max(0, to - Math.max(from, trimPoint))
  }
  const spans: readonly (Run | JournalBlock)[] = [...runs, ...blocks]
  for (const [index, span] of spans.entries()) {
    if (span.firstSeqNum < end || span.endSeqNum <= span.firstSeqNum) {
      throw new RangeError(`what begins at ${span.firstSeqNum} overlaps what ends at ${end}`)
    }
    if (span.lastTimestamp < timestamp) {
      throw new RangeError(`what begins at ${span.firstSeqNum} is older than what is before it`)
    }
    // What is freed at the beginning leaves nothing behind, as it should be.
    if (index > 0) gap(end, span.firstSeqNum)
    end = span.endSeqNum
    timestamp = span.lastTimestamp
  }
  if (end > tail.seqNum)
    throw new RangeError(`there are records up to ${end}, and the tail is at ${tail.seqNum}`)
  // That the last record has the time of the tail was seen with the record: a merged run may end behind its last one.
  if (timestamp > tail.timestamp) {
    throw new RangeError(`the last record is of ${timestamp}, and the tail of ${tail.timestamp}`)
  }
  if (spans.length > 0) gap(end, tail.seqNum)
  if (missing > 0) {
    const note = `${missing} records are not there that were not trimmed: they expired before others in front of them`
    scan.findings.note(place.file, note, { offset: place.offset, log: id })
  }
}

/** What the storage answers when it is asked how much a log has. */
function checkMeasure({ meteredBytes, runs, blocks }: Log): void {
  let sum = 0
  for (const run of runs) sum += run.meteredBytes
  for (const block of blocks) sum += block.meteredBytes
  if (sum !== meteredBytes) {
    throw new RangeError(`the log has ${meteredBytes} metered bytes, and what it holds has ${sum}`)
  }
}
