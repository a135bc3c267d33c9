import type { Clock } from '../../src/runtime/clock.ts'
import { planOf } from '../../src/sync/basin-plan.ts'

/** How long a stream may keep the connection that streams have in turn while others wait, in milliseconds. */
const TURN_MS = 30_000

interface LeaderContext {
  readonly clock: Clock
  readonly connectionsMax: number
  /** How often open streams without a connection are caught up with, in milliseconds. */
  readonly catchUpMs: number
  /** The streams that the app has open in any tab, the one that was used last first. */
  readonly open: () => readonly string[]
  readonly isStopped: (name: string) => boolean
  /** Whether a connected stream has nothing to fetch or to send at the moment. */
  readonly isDone: (name: string) => boolean
  /** Called with true to connect a stream, and with false to disconnect it. */
  readonly onPermitted: (name: string, isPermitted: boolean) => void
}

/** Decides in the elected tab which streams are connected. */
export class BasinLeader {
  readonly #context: LeaderContext
  readonly #permitted = new Set<string>()
  /** Streams that have records to fetch or to send, as far as that is known, in the order of their turns. */
  readonly #due = new Set<string>()
  #visited: { readonly name: string; readonly since: number } | undefined
  #isPlanned = false
  #hasEnded = false
  #cancelTurn = () => {}
  #cancelCatchUp = () => {}

  constructor(context: LeaderContext) {
    this.#context = context
    this.#catchUpLater()
  }

  isPermitted(name: string): boolean {
    return this.#permitted.has(name)
  }

  /** Whether a stream may have records to fetch or to send. */
  isDue(name: string): boolean {
    return this.#due.has(name)
  }

  /** Gives streams a turn unless they are connected. */
  due(names: Iterable<string>): void {
    for (const name of names) this.#due.add(name)
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

  /** Disconnects all streams. */
  end(): void {
    this.#hasEnded = true
    this.#cancelTurn()
    this.#cancelCatchUp()
    for (const name of this.#permitted) this.#context.onPermitted(name, false)
    this.#permitted.clear()
  }

  #decide(): void {
    const { connectionsMax, isStopped, isDone, onPermitted } = this.#context
    for (const name of this.#permitted) if (isDone(name)) this.#due.delete(name)
    this.#endLongTurn()
    const open = this.#context.open()
    // They have no connection, and keep their state for the app to see.
    const stopped = new Set(open.filter(isStopped))
    const { followed, visited } = planOf({ open, stopped, due: this.#due, connectionsMax })
    const chosen = new Set([...stopped, ...followed, ...(visited === undefined ? [] : [visited])])
    for (const name of [...this.#permitted]) {
      if (chosen.has(name)) continue
      if (!isDone(name)) this.#due.add(name)
      this.#permitted.delete(name)
      onPermitted(name, false)
    }
    for (const name of chosen) {
      if (this.#permitted.has(name)) continue
      this.#permitted.add(name)
      onPermitted(name, true)
    }
    this.#beginTurn(visited)
  }

  /** Puts a stream behind the others if it has had its turn, so that one that fails does not block them. */
  #endLongTurn(): void {
    if (this.#visited === undefined) return
    const { name, since } = this.#visited
    const isLong = Math.abs(this.#context.clock.now() - since) >= TURN_MS
    if (isLong && this.#due.delete(name)) this.#due.add(name)
  }

  #beginTurn(name: string | undefined): void {
    const { clock } = this.#context
    if (name !== undefined && name === this.#visited?.name) {
      if (Math.abs(clock.now() - this.#visited.since) < TURN_MS) return
    }
    this.#cancelTurn()
    this.#cancelTurn = () => {}
    this.#visited = name === undefined ? undefined : { name, since: clock.now() }
    if (name === undefined) return
    this.#cancelTurn = clock.schedule(TURN_MS, () => this.plan(), { background: true })
  }

  #catchUpLater(): void {
    const { clock, catchUpMs } = this.#context
    if (catchUpMs === Number.POSITIVE_INFINITY) return
    const catchUp = () => {
      this.due(this.#context.open().filter((name) => !this.#permitted.has(name)))
      this.#catchUpLater()
    }
    this.#cancelCatchUp = clock.schedule(catchUpMs, catchUp, { background: true })
  }
}
