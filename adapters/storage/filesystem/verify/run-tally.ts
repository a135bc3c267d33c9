import type { StoredBlock } from '../../../../src/storage/contract.ts'
import type { Log } from '../log.ts'
import type { Run } from '../run.ts'
import { coversRange, firstIndex } from '../seq-ranges.ts'
import { checkBlock, checkFormat } from './block-check.ts'
import type { Place } from './findings.ts'
import type { Scan } from './scan.ts'

/** What the blocks of a run add up to, in order, and whether that is what the state says of the run. */
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
  /** Of the blocks that are not freed; undefined in front of the first one of the log. */
  #keptEnd: number | undefined
  #timestamp: number
  #minExpiry = Number.POSITIVE_INFINITY
  #maxExpiry = 0

  constructor(scan: Scan, log: Log, run: Run) {
    this.#scan = scan
    this.#log = log
    this.#run = run
    this.#end = run.firstSeqNum
    const index = firstIndex(log.runs, ({ firstSeqNum }) => firstSeqNum >= run.firstSeqNum)
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

  /** Counts what there is. With `isWhole`, holds it to what the state says; throws `RangeError` when they do not agree. */
  end(isWhole: boolean): void {
    this.#scan.blocks += this.#blocks
    this.#scan.records += this.#records
    if (!isWhole) return
    this.#noteMissing()
    this.#checkSpan()
    const { blocks, meteredBytes, liveBytes, lastTimestamp, minExpiry, maxExpiry } = this.#run
    if (blocks !== this.#blocks || meteredBytes !== this.#meteredBytes) {
      const found = `${this.#blocks} blocks with ${this.#meteredBytes} metered bytes`
      throw new RangeError(`a run of ${blocks} blocks with ${meteredBytes} metered bytes has ${found}`)
    }
    // What is about them counts too, and of merged blocks what was about them before.
    if (liveBytes < this.#dataBytes) {
      throw new RangeError(`a run of which ${liveBytes} bytes are wanted has blocks of ${this.#dataBytes}`)
    }
    if (lastTimestamp !== this.#timestamp) {
      throw new RangeError(`a run up to time ${lastTimestamp} ends at ${this.#timestamp}`)
    }
    if ((minExpiry ?? Number.POSITIVE_INFINITY) > this.#minExpiry) {
      throw new RangeError('a block of a run expires before all of them do')
    }
    if ((maxExpiry ?? Number.POSITIVE_INFINITY) < this.#maxExpiry) {
      throw new RangeError('a block of a run expires after all of them have')
    }
  }

  #checkPlace({ firstSeqNum, endSeqNum, firstTimestamp }: StoredBlock): void {
    const { endSeqNum: runEnd, holes } = this.#run
    if (firstSeqNum < this.#end || endSeqNum > runEnd) {
      throw new RangeError(
        `a block from ${firstSeqNum} to ${endSeqNum} lies between ${this.#end} and ${runEnd}`,
      )
    }
    if (firstTimestamp < this.#timestamp) {
      throw new RangeError(`a block begins at time ${firstTimestamp}, before ${this.#timestamp}`)
    }
    const hole = holes[firstIndex(holes, ({ to }) => to > firstSeqNum)]
    const isTouched = hole !== undefined && hole.from < endSeqNum
    if (isTouched && !coversRange(holes, { from: firstSeqNum, to: endSeqNum })) {
      throw new RangeError(`a part of the block from ${firstSeqNum} to ${endSeqNum} is freed`)
    }
  }

  #checkFreed({ firstSeqNum, endSeqNum, expiresAt }: StoredBlock, place: Place): void {
    const { findings, isPartial } = this.#scan
    const { head, id } = this.#log
    // The trim may be what is lost.
    if (isPartial || expiresAt !== null || endSeqNum <= head.trimPoint) return
    const problem = `the block from ${firstSeqNum} to ${endSeqNum} is freed, and neither expires nor was trimmed`
    findings.problem(place, problem, id)
  }

  #addMissing(from: number, to: number): void {
    this.#missing += Math.max(0, to - Math.max(from, this.#log.head.trimPoint))
  }

  /** A merged run has the span of those before it, and not what was freed at their ends: that is missing, as what is missing between blocks. */
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
        throw new RangeError(`a hole from ${from} to ${to} lies between ${end} and ${endSeqNum}`)
      }
      end = to
    }
    const { tail } = this.#log.head
    if (!this.#scan.isPartial && this.#end === tail.seqNum && this.#timestamp !== tail.timestamp) {
      throw new RangeError(`the last record is of ${this.#timestamp}, and the tail of ${tail.timestamp}`)
    }
  }

  #isFreed({ firstSeqNum, endSeqNum }: StoredBlock): boolean {
    return coversRange(this.#run.holes, { from: firstSeqNum, to: endSeqNum })
  }
}
