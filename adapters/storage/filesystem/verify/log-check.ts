import type { JournalBlock, Log } from '../state/log.ts'
import type { Run } from '../state/segment.ts'
import type { Place } from './report.ts'
import type { Scan } from './scan.ts'

/** Checks for each log that the places of its blocks agree with each other and with its head. */
export async function checkLogs(scan: Scan): Promise<void> {
  for await (const log of scan.state.logs.values()) {
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
      throw new RangeError(`blocks from ${span.firstSeqNum} overlap blocks up to ${end}`)
    }
    if (span.lastTimestamp < timestamp) {
      throw new RangeError(`blocks from ${span.firstSeqNum} are older than those before them`)
    }
    // Freeing at the beginning of a log leaves no gap.
    if (index > 0) gap(end, span.firstSeqNum)
    end = span.endSeqNum
    timestamp = span.lastTimestamp
  }
  if (end > tail.seqNum) throw new RangeError(`records reach ${end}, but the tail is ${tail.seqNum}`)
  // The last record was compared with the tail when it was read: a compacted run may end after its last
  // record.
  if (timestamp > tail.timestamp) {
    throw new RangeError(`the last record has timestamp ${timestamp}, but the tail has ${tail.timestamp}`)
  }
  if (spans.length > 0) gap(end, tail.seqNum)
  if (missing > 0) {
    const note = `${missing} records are missing that were not trimmed: they expired before older ones`
    scan.findings.note(place.file, note, { offset: place.offset, log: id })
  }
}

/** The size that the storage reports for the log. */
function checkMeasure({ meteredBytes, runs, blocks }: Log): void {
  let sum = 0
  for (const run of runs) sum += run.meteredBytes
  for (const block of blocks) sum += block.meteredBytes
  if (sum !== meteredBytes) {
    throw new RangeError(`the log counts ${meteredBytes} metered bytes, but its blocks have ${sum}`)
  }
}
