import {
  extendedExpiry,
  isExpired,
  type RetentionExtension,
  reclaimablePoint,
} from '../../../../src/core/retention.ts'
import type { Reclaimed, ReclaimLimits } from '../../../../src/storage/contract.ts'
import type { Committer } from '../journal/committer.ts'
import type { Stage } from '../journal/stage.ts'
import type { ChunkFacts } from '../segment/chunk.ts'
import type { RunReader } from '../segment/run-reader.ts'
import type { Change } from '../state/change.ts'
import type { Log } from '../state/log.ts'
import { earliestExpiry, type FreedRange, type Run } from '../state/segment.ts'
import { coversRange } from '../state/seq-ranges.ts'
import type { State } from '../state/state.ts'
import type { UnresolvedRolls } from './failed-rolls.ts'

/** The largest size of a freed range in the journal. */
const RANGE_BYTES = 48

/** Frees blocks, in one group for all logs of a call. Only one call may run at a time. */
export class Reclaimer {
  readonly #state: State
  readonly #committer: Committer
  readonly #reader: RunReader
  readonly #unresolvedRolls: UnresolvedRolls
  /** Numbers of logs known to have something to free, so that successive calls need not look for them. */
  #due: number[] = []
  /** Numbers of logs that could not be examined. They are skipped until the failure is reported. */
  readonly #failed = new Set<number>()
  /** The first failure of these logs. */
  #failure: unknown
  /** Whether all other logs were examined, so that the next call rejects. */
  #isFailureDue = false

  constructor(state: State, committer: Committer, reader: RunReader, unresolvedRolls: UnresolvedRolls) {
    this.#state = state
    this.#committer = committer
    this.#reader = reader
    this.#unresolvedRolls = unresolvedRolls
  }

  async reclaim(limits: ReclaimLimits): Promise<Reclaimed> {
    if (this.#isFailureDue) throw this.#takeFailure()
    await this.#unresolvedRolls.rollBack()
    const plans: ReclaimPlan[] = []
    const planned = new Set<number>()
    let left = limits.blocksMax
    let more = false
    for (;;) {
      const log = await this.#nextDue(limits, planned)
      if (log === undefined) break
      // Also bounds the logs that have nothing to free, such as those that are trimmed within a block.
      if (left === 0 || planned.size >= limits.blocksMax) {
        more = true
        break
      }
      planned.add(log.number)
      try {
        const plan = await ReclaimPlan.make(this.#reader, log, limits, left)
        left -= plan.blocks
        more ||= plan.hasMore
        plans.push(plan)
      } catch (error) {
        // A damaged log must not keep the others from being freed.
        this.#failed.add(log.number)
        this.#failure ??= error
      }
    }
    const executed = await this.#execute(plans)
    more ||= executed.length < plans.length
    const touched = executed.filter(({ log, ranges }) => ranges.length > 0 && this.#exists(log))
    const logIds = touched.map(({ log }) => log.id)
    if (more || this.#failed.size === 0) return { more, logIds }
    if (logIds.length === 0) throw this.#takeFailure()
    // The caller needs the ids. The next call rejects even if more is due by then: otherwise, a caller that
    // continues as long as there is more would never stop while records expire.
    this.#isFailureDue = true
    return { more: true, logIds }
  }

  /** Returns the failure to report. Later calls examine the logs again. */
  #takeFailure(): unknown {
    const failure = this.#failure
    this.#failure = undefined
    this.#isFailureDue = false
    this.#failed.clear()
    return failure
  }

  /** Resolves to the plans that were executed: logs may have been deleted or extended since. */
  async #execute(plans: readonly ReclaimPlan[]): Promise<readonly ReclaimPlan[]> {
    const ranges = plans.reduce((sum, plan) => sum + plan.ranges.length, 0)
    let executed = plans
    if (ranges > 0) {
      const stageAll = (stage: Stage): Change[] => {
        executed = plans.filter(({ log, epoch }) => stage.holdsLog(log.number, epoch))
        return executed
          .filter((plan) => plan.ranges.length > 0)
          .map((plan) => ({ kind: 'free', log: plan.log.number, ranges: plan.ranges }))
      }
      // The logs count as changed and are in memory.
      await this.#committer.commit(ranges * RANGE_BYTES, stageAll, true, () => undefined)
    }
    for (const plan of executed) plan.finish()
    return executed
  }

  /**
   * Resolves to the same log until it is planned. The log counts as changed, so that what is learned about it
   * is kept in memory and in the next checkpoint.
   */
  async #nextDue(limits: ReclaimLimits, planned: ReadonlySet<number>): Promise<Log | undefined> {
    const { logs } = this.#state
    const isSkipped = (number: number): boolean => planned.has(number) || this.#failed.has(number)
    const isDue = (log: Log): boolean => !isSkipped(log.number) && isDueAt(log, limits)
    for (let isComplete = false; ; ) {
      for (let number = this.#due.at(-1); number !== undefined; number = this.#due.at(-1)) {
        const log = isSkipped(number) ? undefined : await logs.changeIf(number, isDue)
        if (log !== undefined) return log
        this.#due.pop()
      }
      if (isComplete) return undefined
      this.#due = await logs.due(Math.max(limits.now, limits.trimmedBefore), isDue)
      isComplete = true
    }
  }

  #exists(log: Log): boolean {
    return this.#state.logs.withNumber(log.number) !== undefined
  }
}

function isDueAt(log: Log, { now, trimmedBefore }: ReclaimLimits): boolean {
  if (log.nextExpiry <= now) return true
  const { nextTrim } = log
  return nextTrim !== undefined && nextTrim <= trimmedBefore
}

interface RunExpiry {
  minExpiry: number
  keptUntil: number
}

interface Freeable {
  readonly firstSeqNum: number
  readonly endSeqNum: number
  readonly meteredBytes: number
  readonly expiresAt: number | null
}

/** Finds the blocks of one log that can be freed, up to a limit. */
class ReclaimPlan {
  readonly log: Log
  /** The epoch of the log when the plan was made. */
  readonly epoch: number
  readonly ranges: FreedRange[] = []
  /** Whether more blocks can be freed than the limit allows. */
  hasMore = false
  readonly #now: number
  readonly #point: number
  readonly #extensions: readonly RetentionExtension[] | undefined
  #left: number
  /** The times at which the remaining blocks of each run expire, without and with the extensions. */
  readonly #expiries = new Map<Run, RunExpiry>()

  private constructor(log: Log, limits: ReclaimLimits, blocksMax: number) {
    this.log = log
    this.epoch = log.head.epoch
    this.#extensions = log.head.extensions
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
    for (const [run, { minExpiry, keptUntil }] of this.#expiries) {
      run.minExpiry = minExpiry === Number.POSITIVE_INFINITY ? null : minExpiry
      run.keptUntil = keptUntil
    }
    this.log.updateNextExpiry()
    if (!this.hasMore) this.log.reclaimedPoint = Math.max(this.log.reclaimedPoint, this.#point)
  }

  async #takeRun(reader: RunReader, run: Run): Promise<void> {
    if (!this.#mayFree(run)) return
    const last = { firstSeqNum: run.firstSeqNum, expiresAt: run.maxExpiry }
    const isWhole = run.endSeqNum <= this.#point || this.#hasExpired(last)
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
    const remaining: RunExpiry = { minExpiry: Number.POSITIVE_INFINITY, keptUntil: Number.POSITIVE_INFINITY }
    const keep = (expiresAt: number | null, keptUntil: number | null) => {
      remaining.minExpiry = Math.min(remaining.minExpiry, expiresAt ?? Number.POSITIVE_INFINITY)
      remaining.keptUntil = Math.min(remaining.keptUntil, keptUntil ?? Number.POSITIVE_INFINITY)
    }
    let freed: FreedRange | undefined
    for (const chunk of await reader.chunks(run)) {
      if (coversRange(run.holes, { from: chunk.firstSeqNum, to: chunk.endSeqNum })) continue
      if (!this.#mayHold(chunk) || this.#left === 0) {
        this.hasMore ||= this.#mayHold(chunk)
        keep(chunk.minExpiry, earliestExpiry(chunk, this.#extensions))
        continue
      }
      for (const block of await reader.describe(this.log.number, run, chunk)) {
        if (coversRange(run.holes, { from: block.firstSeqNum, to: block.endSeqNum })) continue
        if (this.#take(block)) freed = this.#free(block, block.dataBytes, freed)
        else keep(block.expiresAt, extendedExpiry(block, this.#extensions))
      }
    }
    this.#expiries.set(run, remaining)
  }

  #takeJournalBlocks(): void {
    let last: FreedRange | undefined
    for (const block of this.log.blocks) if (this.#take(block)) last = this.#free(block, block.bytes, last)
  }

  #take(block: Freeable): boolean {
    const isDue = this.#hasExpired(block) || block.endSeqNum <= this.#point
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
    return run.liveFrom < this.#point || this.log.expiryOf(run) <= this.#now
  }

  #mayHold(chunk: ChunkFacts): boolean {
    return chunk.firstSeqNum < this.#point || earliestExpiry(chunk, this.#extensions) <= this.#now
  }

  #hasExpired(block: { readonly firstSeqNum: number; readonly expiresAt: number | null }): boolean {
    return isExpired(extendedExpiry(block, this.#extensions), this.#now)
  }
}
