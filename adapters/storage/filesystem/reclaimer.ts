import type { Reclaimed, ReclaimLimits } from '../../../src/storage/contract.ts'
import type { Change } from './changes.ts'
import type { Committer } from './committer.ts'
import type { Log } from './log.ts'
import { ReclaimPlan } from './reclaim-plan.ts'
import type { RunReader } from './run-reader.ts'
import type { State } from './state.ts'
import type { UndecidedRolls } from './undecided-rolls.ts'

/** What a freed range takes in the journal, at most. */
const RANGE_BYTES = 48

/** Frees blocks, those of all logs of one call in one group. One call at a time. */
export class Reclaimer {
  readonly #state: State
  readonly #committer: Committer
  readonly #reader: RunReader
  readonly #undecided: UndecidedRolls
  /** Logs that were found to have something to free, so that a call of many need not look at all logs again. */
  #due: Log[] = []

  constructor(state: State, committer: Committer, reader: RunReader, undecided: UndecidedRolls) {
    this.#state = state
    this.#committer = committer
    this.#reader = reader
    this.#undecided = undecided
  }

  async reclaim(limits: ReclaimLimits): Promise<Reclaimed> {
    await this.#undecided.takeBack()
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
    await this.#carryOut(plans)
    const touched = plans.filter(({ log, ranges }) => ranges.length > 0 && this.#exists(log))
    return { more, logIds: touched.map(({ log }) => log.id) }
  }

  async #carryOut(plans: readonly ReclaimPlan[]): Promise<void> {
    const changes = plans
      .filter(({ ranges }) => ranges.length > 0)
      .map(
        ({ log, ranges }): Extract<Change, { kind: 'free' }> => ({ kind: 'free', log: log.number, ranges }),
      )
    const ranges = changes.reduce((sum, change) => sum + change.ranges.length, 0)
    if (ranges > 0) {
      // A log may have been deleted since.
      await this.#committer.commit(ranges * RANGE_BYTES, (stage) =>
        changes.filter(({ log }) => stage.holdsLog(log)),
      )
    }
    for (const plan of plans) plan.settle()
  }

  /** Stays the next until it is planned. */
  #nextDue(limits: ReclaimLimits, planned: ReadonlySet<Log>): Log | undefined {
    const isDue = (log: Log): boolean => !planned.has(log) && this.#exists(log) && isDueAt(log, limits)
    for (let log = this.#due.at(-1); log !== undefined; log = this.#due.at(-1)) {
      if (isDue(log)) return log
      this.#due.pop()
    }
    this.#due = [...this.#state.logsByNumber.values()].filter(isDue)
    return this.#due.at(-1)
  }

  #exists(log: Log): boolean {
    return this.#state.logsByNumber.has(log.number)
  }
}

function isDueAt(log: Log, { now, trimmedBefore }: ReclaimLimits): boolean {
  if (log.nextExpiry <= now) return true
  const { nextTrim } = log
  return nextTrim !== undefined && nextTrim <= trimmedBefore
}
