import type { Reclaimed, ReclaimLimits } from '../../../../src/storage/contract.ts'
import type { Committer } from '../journal/committer.ts'
import type { RunReader } from '../segment/run-reader.ts'
import type { Change } from '../state/change.ts'
import type { Log } from '../state/log.ts'
import type { State } from '../state/state.ts'
import { ReclaimPlan } from './reclaim-plan.ts'
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
