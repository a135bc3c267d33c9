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
  #end: number
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
    if (this.#isFreed(block)) return
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
    const { blocks, meteredBytes, lastTimestamp, minExpiry, maxExpiry } = this.#run
    if (blocks !== this.#blocks || meteredBytes !== this.#meteredBytes) {
      const found = `${this.#blocks} blocks with ${this.#meteredBytes} metered bytes`
      throw new RangeError(`a run of ${blocks} blocks with ${meteredBytes} metered bytes has ${found}`)
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

  #isFreed({ firstSeqNum, endSeqNum }: StoredBlock): boolean {
    return coversRange(this.#run.holes, { from: firstSeqNum, to: endSeqNum })
  }
}
