import type { JournalBlock, Log } from '../log.ts'
import type { FreedRange, Run } from '../run.ts'
import { firstIndex } from '../seq-ranges.ts'

/** Only what was trimmed or may have expired is freed: all else was acknowledged, and would be lost. Throws `RangeError`. */
export function checkFree(log: Log, ranges: readonly FreedRange[]): void {
  for (const range of ranges) {
    const run = log.runs[firstIndex(log.runs, ({ endSeqNum }) => endSeqNum > range.from)]
    if (run === undefined || run.firstSeqNum > range.from) checkBlocks(log, range)
    else checkPart(log, run, range)
  }
}

/** Blocks in journals are counted in the measure of their frames, so all of it can be compared. */
function checkBlocks({ head, blocks }: Log, range: FreedRange): void {
  const start = firstIndex(blocks, ({ endSeqNum }) => endSeqNum > range.from)
  const end = firstIndex(blocks, ({ firstSeqNum }) => firstSeqNum >= range.to)
  const freed = blocks.slice(start, end)
  const meteredBytes = freed.reduce((sum, block) => sum + block.meteredBytes, 0)
  const isWhole = freed[0]?.firstSeqNum === range.from && freed.at(-1)?.endSeqNum === range.to
  if (!isWhole || freed.length !== range.blocks || meteredBytes !== range.meteredBytes) {
    const found = `${freed.length} blocks with ${meteredBytes}`
    throw new RangeError(
      `from ${range.from} to ${range.to}, ${range.blocks} blocks with ${range.meteredBytes} metered bytes are freed of ${found}`,
    )
  }
  const isKept = ({ endSeqNum, expiresAt }: JournalBlock): boolean =>
    expiresAt === null && endSeqNum > head.trimPoint
  if (freed.some(isKept)) throw lost(range)
}

/** Whether it has so many blocks is seen when the run is read. */
function checkPart({ head }: Log, { endSeqNum, minExpiry }: Run, range: FreedRange): void {
  if (range.to > endSeqNum) {
    throw new RangeError(`what is freed up to ${range.to} lies in a run up to ${endSeqNum}`)
  }
  if (range.to > head.trimPoint && minExpiry === null) throw lost(range)
}

function lost({ from, to }: FreedRange): RangeError {
  return new RangeError(`what is freed from ${from} to ${to} neither expires nor was trimmed`)
}
