import { reclaimablePoint } from '../../../../src/core/retention.ts'
import type { ReclaimLimits } from '../../../../src/storage/contract.ts'
import type { ChunkFacts } from '../segment/chunk.ts'
import type { RunReader } from '../segment/run-reader.ts'
import type { Log } from '../state/log.ts'
import { earliest, type FreedRange, type Run } from '../state/segment.ts'
import { coversRange } from '../state/seq-ranges.ts'

interface Freeable {
  readonly firstSeqNum: number
  readonly endSeqNum: number
  readonly meteredBytes: number
  readonly expiresAt: number | null
}

/** Finds the blocks of one log that can be freed, up to a limit. */
export class ReclaimPlan {
  readonly log: Log
  readonly ranges: FreedRange[] = []
  /** Whether more blocks can be freed than the limit allows. */
  hasMore = false
  readonly #now: number
  readonly #point: number
  #left: number
  /** When the remaining blocks of each run expire. */
  readonly #expiries = new Map<Run, number | null>()

  private constructor(log: Log, limits: ReclaimLimits, blocksMax: number) {
    this.log = log
    this.#now = limits.now
    this.#point = reclaimablePoint(log.head.trims, limits.trimmedBefore)
    this.#left = blocksMax
  }

  static async make(
    reader: RunReader,
    log: Log,
    limits: ReclaimLimits,
    blocksMax: number,
  ): Promise<ReclaimPlan> {
    const plan = new ReclaimPlan(log, limits, blocksMax)
    const { runs } = log
    const release = reader.hold(runs.filter((run) => plan.#mayFree(run)))
    try {
      for (const run of runs) {
        // Hundreds of thousands of runs may follow, and nothing is left to find out.
        if (plan.#left === 0 && plan.hasMore) break
        await plan.#takeRun(reader, run)
      }
    } finally {
      await release()
    }
    plan.#takeJournalBlocks()
    return plan
  }

  get blocks(): number {
    return this.ranges.reduce((sum, { blocks }) => sum + blocks, 0)
  }

  /** Updates the log once the ranges are freed, so that it is not examined again too early. */
  finish(): void {
    for (const [run, minExpiry] of this.#expiries) run.minExpiry = minExpiry
    this.log.updateNextExpiry()
    if (!this.hasMore) this.log.reclaimedPoint = Math.max(this.log.reclaimedPoint, this.#point)
  }

  async #takeRun(reader: RunReader, run: Run): Promise<void> {
    if (!this.#mayFree(run)) return
    const isWhole = run.endSeqNum <= this.#point || this.#isExpired(run.maxExpiry)
    if (isWhole && run.blocks <= this.#left) {
      this.#left -= run.blocks
      this.ranges.push({
        from: run.firstSeqNum,
        to: run.endSeqNum,
        blocks: run.blocks,
        meteredBytes: run.meteredBytes,
        bytes: run.liveBytes,
      })
      return
    }
    if (run.home.isAdopted) {
      // A single block is freed completely or not at all.
      this.hasMore ||= isWhole
      return
    }
    let minExpiry: number | null = null
    let last: FreedRange | undefined
    for (const chunk of await reader.chunks(run)) {
      if (coversRange(run.holes, { from: chunk.firstSeqNum, to: chunk.endSeqNum })) continue
      if (!this.#mayHold(chunk) || this.#left === 0) {
        this.hasMore ||= this.#mayHold(chunk)
        minExpiry = earliest([minExpiry, chunk.minExpiry])
        continue
      }
      for (const block of await reader.describe(this.log.number, run, chunk)) {
        if (coversRange(run.holes, { from: block.firstSeqNum, to: block.endSeqNum })) continue
        if (this.#take(block)) last = this.#free(block, block.dataBytes, last)
        else minExpiry = earliest([minExpiry, block.expiresAt])
      }
    }
    this.#expiries.set(run, minExpiry)
  }

  #takeJournalBlocks(): void {
    let last: FreedRange | undefined
    for (const block of this.log.blocks) if (this.#take(block)) last = this.#free(block, block.bytes, last)
  }

  #take(block: Freeable): boolean {
    const isDue = this.#isExpired(block.expiresAt) || block.endSeqNum <= this.#point
    if (!isDue) return false
    if (this.#left === 0) {
      this.hasMore = true
      return false
    }
    this.#left--
    return true
  }

  /** Adjacent blocks are recorded as one range. */
  #free({ firstSeqNum, endSeqNum, meteredBytes }: Freeable, bytes: number, last?: FreedRange): FreedRange {
    const range = { from: firstSeqNum, to: endSeqNum, blocks: 1, meteredBytes, bytes }
    if (last === undefined || last.to !== firstSeqNum) {
      this.ranges.push(range)
      return range
    }
    const united = {
      from: last.from,
      to: endSeqNum,
      blocks: last.blocks + 1,
      meteredBytes: last.meteredBytes + meteredBytes,
      bytes: last.bytes + bytes,
    }
    this.ranges[this.ranges.length - 1] = united
    return united
  }

  #mayFree(run: Run): boolean {
    return run.liveFrom < this.#point || this.#isExpired(run.minExpiry)
  }

  #mayHold(chunk: ChunkFacts): boolean {
    return chunk.firstSeqNum < this.#point || this.#isExpired(chunk.minExpiry)
  }

  #isExpired(expiresAt: number | null): boolean {
    return expiresAt !== null && expiresAt <= this.#now
  }
}
