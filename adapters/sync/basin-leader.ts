import type { Clock } from '../../src/runtime/clock.ts'
import {
  type DueStreams,
  dueAt,
  NONE_DUE,
  nextDueAt,
  postponed,
  windowOf,
  withDue,
  withoutDue,
} from '../../src/sync/basin-turns.ts'
import type { MirrorState } from '../../src/sync/mirror-state.ts'

/** How long a stream outside of the window may keep its connection while others wait, in milliseconds. */
const TURN_MS = 30_000

/** The state and the actions that a leader needs. */
export interface LeaderContext {
  readonly clock: Clock
  readonly random: () => number
  readonly slots: number
  /** How often streams outside of the window are caught up with, in milliseconds. */
  readonly catchUpMs: number
  /** All streams: the used ones, the latest first, and the others, the newest first. */
  readonly names: () => { readonly used: readonly string[]; readonly others: readonly string[] }
  readonly stateOf: (name: string) => MirrorState
  /** Whether everything is sent that may be sent. */
  readonly isFlushed: (name: string) => boolean
  /** Whether the server can be reached, as far as it is known. */
  readonly isReachable: () => boolean
  readonly permitted: ReadonlySet<string>
  readonly permit: (name: string) => void
  readonly withdraw: (name: string) => void
}

/** Decides in the tab that leads which streams connect. */
export class BasinLeader {
  readonly #context: LeaderContext
  #due: DueStreams = NONE_DUE
  #visited: readonly string[] = []
  #live: readonly string[] = []
  /** The times at which turns began. */
  readonly #since = new Map<string, number>()
  #isPlanned = false
  #hasEnded = false
  #cancelTimer: (() => void) | undefined
  #cancelCatchUp: (() => void) | undefined

  constructor(context: LeaderContext) {
    this.#context = context
    this.#catchUpLater()
  }

  /** Gives streams a turn. */
  due(names: readonly string[]): void {
    this.#due = withDue(this.#due, names)
    this.plan()
  }

  /** Decides again in a later microtask. */
  plan(): void {
    if (this.#isPlanned) return
    this.#isPlanned = true
    queueMicrotask(() => {
      this.#isPlanned = false
      if (!this.#hasEnded) this.#decide()
    })
  }

  end(): void {
    this.#hasEnded = true
    this.#cancelTimer?.()
    this.#cancelCatchUp?.()
    for (const name of [...this.#context.permitted]) this.#context.withdraw(name)
  }

  #catchUpLater(): void {
    const { clock, catchUpMs } = this.#context
    if (catchUpMs === Number.POSITIVE_INFINITY) return
    const catchUp = () => {
      const { used, others } = this.#context.names()
      this.due([...used, ...others].filter((name) => !this.#live.includes(name)))
      this.#catchUpLater()
    }
    this.#cancelCatchUp = clock.schedule(catchUpMs, catchUp, { background: true })
  }

  #decide(): void {
    const { clock, slots, names, permitted, permit, withdraw, isReachable, stateOf } = this.#context
    this.#endTurns()
    const now = clock.now()
    const { used, others } = names()
    const stopped = new Set([...used, ...others].filter((name) => stateOf(name).kind === 'stopped'))
    const due = isReachable() ? dueAt(this.#due, now) : []
    const { live, visited } = windowOf({ used, others, due, visited: this.#visited, stopped, slots })
    this.#live = live
    this.#visited = visited
    const chosen = new Set([...live, ...visited])
    for (const name of [...permitted]) {
      if (chosen.has(name)) continue
      // What it still has to fetch or send has its turn later.
      if (!this.#isDone(name)) this.#due = withDue(this.#due, [name])
      this.#since.delete(name)
      withdraw(name)
    }
    for (const name of chosen) {
      if (permitted.has(name)) continue
      this.#since.set(name, now)
      permit(name)
    }
    this.#wakeAt(now)
  }

  /** Ends the turns of streams that need no connection any more, and of those that keep others waiting. */
  #endTurns(): void {
    const { clock, random, permitted, stateOf } = this.#context
    const now = clock.now()
    const done = [...permitted].filter((name) => this.#isDone(name))
    this.#due = withoutDue(this.#due, done)
    const waiting = dueAt(this.#due, now).length
    for (const name of this.#visited) {
      if (!this.#due.has(name)) continue
      const hasFailed = stateOf(name).kind === 'offline'
      const isLong = now - (this.#since.get(name) ?? now) >= TURN_MS && waiting > this.#visited.length
      if (!hasFailed && !isLong) continue
      this.#due = postponed(this.#due, name, { now, random: random(), hasFailed })
      this.#visited = this.#visited.filter((other) => other !== name)
    }
  }

  #isDone(name: string): boolean {
    const { stateOf, isFlushed } = this.#context
    const { kind } = stateOf(name)
    return kind === 'stopped' || (kind === 'live' && isFlushed(name))
  }

  /** Decides again when a turn ends or may begin. */
  #wakeAt(now: number): void {
    this.#cancelTimer?.()
    const ends = this.#visited.map((name) => (this.#since.get(name) ?? now) + TURN_MS)
    const next = nextDueAt(this.#due, now)
    const times = [...ends.filter((time) => time > now), ...(next === undefined ? [] : [next])]
    if (times.length === 0) return
    const delayMs = Math.min(...times) - now
    this.#cancelTimer = this.#context.clock.schedule(delayMs, () => this.plan(), { background: true })
  }
}
