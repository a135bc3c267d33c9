import type { StoredBlock } from '../../../../src/storage/contract.ts'
import { lowerBound } from '../../../../src/storage/ordered-list.ts'
import type { Log } from '../state/log.ts'
import type { Run } from '../state/segment.ts'
import { coversRange } from '../state/seq-ranges.ts'
import { checkBlock, checkFormat } from './block-check.ts'
import type { Place } from './report.ts'
import type { Scan } from './scan.ts'

/** Sums up the blocks of a run in order, and compares the result with the state. */
export class RunTally {
  readonly #scan: Scan
  readonly #log: Log
  readonly #run: Run
  #blocks = 0
  #records = 0
  #meteredBytes = 0
  #dataBytes = 0
  #missing = 0
  #end: number
  /** End of the last block that is not freed; undefined before the first block of the log. */
  #keptEnd: number | undefined
  #timestamp: number
  #minExpiry = Number.POSITIVE_INFINITY
  #maxExpiry = 0

  constructor(scan: Scan, log: Log, run: Run) {
    this.#scan = scan
    this.#log = log
    this.#run = run
    this.#end = run.firstSeqNum
    const index = lowerBound(log.runs, ({ firstSeqNum }) => firstSeqNum >= run.firstSeqNum)
    this.#timestamp = log.runs[index - 1]?.lastTimestamp ?? 0
    if (index > 0) this.#keptEnd = run.firstSeqNum
  }

  add(block: StoredBlock, place: Place): void {
    try {
      checkFormat(this.#scan, this.#log.number, checkBlock(block))
      this.#checkPlace(block)
    } catch (error) {
      this.#scan.findings.failure(place, error, this.#log.id)
    }
    this.#end = block.endSeqNum
    this.#timestamp = block.lastTimestamp
    if (this.#isFreed(block)) {
      this.#checkFreed(block, place)
      return
    }
    if (this.#keptEnd !== undefined) this.#addMissing(this.#keptEnd, block.firstSeqNum)
    this.#keptEnd = block.endSeqNum
    this.#dataBytes += block.data.length
    this.#blocks++
    this.#records += block.endSeqNum - block.firstSeqNum
    this.#meteredBytes += block.meteredBytes
    this.#minExpiry = Math.min(this.#minExpiry, block.expiresAt ?? Number.POSITIVE_INFINITY)
    this.#maxExpiry = Math.max(this.#maxExpiry, block.expiresAt ?? Number.POSITIVE_INFINITY)
  }

  /**
   * Adds the blocks to the totals. With `isWhole`, compares them with the state, and throws `RangeError` if
   * they differ.
   */
  end(isWhole: boolean): void {
    this.#scan.blocks += this.#blocks
    this.#scan.records += this.#records
    // A compaction leaves out what was freed before it, which may be among the lost changes.
    if (!isWhole || this.#scan.isPartial) return
    this.#noteMissing()
    this.#checkSpan()
    const { blocks, meteredBytes, liveBytes, lastTimestamp, minExpiry, maxExpiry } = this.#run
    if (blocks !== this.#blocks || meteredBytes !== this.#meteredBytes) {
      const found = `${this.#blocks} blocks with ${this.#meteredBytes} metered bytes`
      throw new RangeError(
        `a run should have ${blocks} blocks with ${meteredBytes} metered bytes but has ${found}`,
      )
    }
    // Frames count too, for compacted blocks those from before the compaction.
    if (liveBytes < this.#dataBytes) {
      throw new RangeError(`a run counts ${liveBytes} bytes in use, but its blocks have ${this.#dataBytes}`)
    }
    if (lastTimestamp !== this.#timestamp) {
      throw new RangeError(`a run should end at time ${lastTimestamp} but ends at ${this.#timestamp}`)
    }
    if ((minExpiry ?? Number.POSITIVE_INFINITY) > this.#minExpiry) {
      throw new RangeError('a block expires before the minimum expiry of its run')
    }
    if ((maxExpiry ?? Number.POSITIVE_INFINITY) < this.#maxExpiry) {
      throw new RangeError('a block expires after the maximum expiry of its run')
    }
  }

  #checkPlace({ firstSeqNum, endSeqNum, firstTimestamp }: StoredBlock): void {
    const { endSeqNum: runEnd, holes } = this.#run
    if (firstSeqNum < this.#end || endSeqNum > runEnd) {
      throw new RangeError(
        `the block from ${firstSeqNum} to ${endSeqNum} is outside ${this.#end} to ${runEnd}`,
      )
    }
    if (firstTimestamp < this.#timestamp) {
      throw new RangeError(`a block begins at time ${firstTimestamp}, before ${this.#timestamp}`)
    }
    const hole = holes[lowerBound(holes, ({ to }) => to > firstSeqNum)]
    const isTouched = hole !== undefined && hole.from < endSeqNum
    if (isTouched && !coversRange(holes, { from: firstSeqNum, to: endSeqNum })) {
      throw new RangeError(`the block from ${firstSeqNum} to ${endSeqNum} is only partly freed`)
    }
  }

  #checkFreed({ firstSeqNum, endSeqNum, expiresAt }: StoredBlock, place: Place): void {
    const { findings, isPartial } = this.#scan
    const { head, id } = this.#log
    // The trim may have been lost.
    if (isPartial || expiresAt !== null || endSeqNum <= head.trimPoint) return
    const problem = `the block from ${firstSeqNum} to ${endSeqNum} is freed but neither expires nor was trimmed`
    findings.problem(place, problem, id)
  }

  #addMissing(from: number, to: number): void {
    this.#missing += Math.max(0, to - Math.max(from, this.#log.head.trimPoint))
  }

  /**
   * A compacted run spans its source runs, but lacks what was freed at their ends. That counts as missing, as
   * gaps between blocks do.
   */
  #noteMissing(): void {
    const { missing } = this.#scan
    const { number } = this.#log
    if (this.#keptEnd !== undefined) this.#addMissing(this.#keptEnd, this.#run.endSeqNum)
    if (this.#missing > 0) missing.set(number, (missing.get(number) ?? 0) + this.#missing)
  }

  #checkSpan(): void {
    const { firstSeqNum, endSeqNum, holes } = this.#run
    let end = firstSeqNum
    for (const { from, to } of holes) {
      if (from < end || to <= from || to > endSeqNum) {
        throw new RangeError(`the hole from ${from} to ${to} is outside ${end} to ${endSeqNum}`)
      }
      end = to
    }
    const { tail } = this.#log.head
    if (!this.#scan.isPartial && this.#end === tail.seqNum && this.#timestamp !== tail.timestamp) {
      throw new RangeError(
        `the last record has timestamp ${this.#timestamp}, but the tail has ${tail.timestamp}`,
      )
    }
  }

  #isFreed({ firstSeqNum, endSeqNum }: StoredBlock): boolean {
    return coversRange(this.#run.holes, { from: firstSeqNum, to: endSeqNum })
  }
}
