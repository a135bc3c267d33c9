import { reclaimablePoint } from '../../../../src/core/retention.ts'
import type { Reclaimed, ReclaimLimits } from '../../../../src/storage/contract.ts'
import type { Committer } from '../journal/committer.ts'
import type { ChunkFacts } from '../segment/chunk.ts'
import type { RunReader } from '../segment/run-reader.ts'
import type { Change } from '../state/change.ts'
import type { Log } from '../state/log.ts'
import { earliest, type FreedRange, type Run } from '../state/segment.ts'
import { coversRange } from '../state/seq-ranges.ts'
import type { State } from '../state/state.ts'
import type { UnresolvedRolls } from './unresolved-rolls.ts'

/** The largest size of a freed range in the journal. */
const RANGE_BYTES = 48

/** Frees blocks, in one group for all logs of a call. Only one call may run at a time. */
export class Reclaimer {
  readonly #state: State
  readonly #committer: Committer
  readonly #reader: RunReader
  readonly #unresolvedRolls: UnresolvedRolls
  /** Logs known to have something to free, so that successive calls need not scan all logs. */
  #due: Log[] = []

  constructor(state: State, committer: Committer, reader: RunReader, unresolvedRolls: UnresolvedRolls) {
    this.#state = state
    this.#committer = committer
    this.#reader = reader
    this.#unresolvedRolls = unresolvedRolls
  }

  async reclaim(limits: ReclaimLimits): Promise<Reclaimed> {
    await this.#unresolvedRolls.rollBack()
    const plans: ReclaimPlan[] = []
    const planned = new Set<Log>()
    let left = limits.blocksMax
    let more = false
    for (;;) {
      const log = this.#nextDue(limits, planned)
      if (log === undefined) break
      if (left === 0) {
        more = true
        break
      }
      const plan = await ReclaimPlan.make(this.#reader, log, limits, left)
      left -= plan.blocks
      more ||= plan.hasMore
      plans.push(plan)
      planned.add(log)
    }
    await this.#execute(plans)
    const touched = plans.filter(({ log, ranges }) => ranges.length > 0 && this.#exists(log))
    return { more, logIds: touched.map(({ log }) => log.id) }
  }

  async #execute(plans: readonly ReclaimPlan[]): Promise<void> {
    const changes = plans
      .filter(({ ranges }) => ranges.length > 0)
      .map(
        ({ log, ranges }): Extract<Change, { kind: 'free' }> => ({ kind: 'free', log: log.number, ranges }),
      )
    const ranges = changes.reduce((sum, change) => sum + change.ranges.length, 0)
    if (ranges > 0) {
      // A log may have been deleted since.
      await this.#committer.commit(
        ranges * RANGE_BYTES,
        (stage) => changes.filter(({ log }) => stage.holdsLog(log)),
        true,
      )
    }
    for (const plan of plans) plan.finish()
  }

  /** Returns the same log until it is planned. */
  #nextDue(limits: ReclaimLimits, planned: ReadonlySet<Log>): Log | undefined {
    const isDue = (log: Log): boolean => !planned.has(log) && this.#exists(log) && isDueAt(log, limits)
    for (let log = this.#due.at(-1); log !== undefined; log = this.#due.at(-1)) {
      if (isDue(log)) return log
      this.#due.pop()
    }
    this.#state.logs.loadDue(Math.max(limits.now, limits.trimmedBefore))
    this.#due = [...this.#state.logs.loaded()].filter(isDue)
    return this.#due.at(-1)
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

interface Freeable {
  readonly firstSeqNum: number
  readonly endSeqNum: number
  readonly meteredBytes: number
  readonly expiresAt: number | null
}

/** Finds the blocks of one log that can be freed, up to a limit. */
class ReclaimPlan {
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
