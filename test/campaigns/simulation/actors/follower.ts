import { HeadwaterError, type ReadEvent, type ReadQuery, type RecordCursor } from '../../../../src/index.ts'
import { checkFailure } from '../checks/check-failure.ts'
import { FollowedRead, rejectionContradiction } from '../checks/followed-read.ts'
import { drawQuery } from '../drawing.ts'
import type { ClockWindow } from '../engine-clock.ts'
import type { SimulatedEngine } from '../simulated-engine.ts'
import { Violation } from '../violation.ts'
import type { World } from '../world.ts'
import type { Actor } from './actor.ts'

interface Following {
  readonly engine: SimulatedEngine
  readonly stream: string
  readonly query: ReadQuery
  readonly cursor: RecordCursor
  readonly read: FollowedRead
  readonly mayFail: boolean
  readonly since: number
  /** Observed since its last event. */
  idle: { readonly window: ClockWindow; readonly stop: () => void }
}

/** Opens read sessions of all kinds, reads at its own pace, and leaves or stays. */
export class Follower implements Actor {
  readonly name: string
  readonly #world: World
  #following: Following | undefined
  #isOpening = false
  #isReading = false
  #isFinished = false

  constructor(name: string, world: World) {
    this.name = name
    this.#world = world
  }

  /** A follower that waits at the tail for further records is idle too. */
  get isIdle(): boolean {
    if (this.#isOpening) return false
    return this.#following === undefined || (this.#isReading && this.#following.read.isCaughtUp)
  }

  act(): void {
    const { scheduler } = this.#world
    if (this.#isOpening) return
    if (this.#following?.engine.isCrashed) this.#forget(this.#following, 'lost')
    if (this.#following === undefined) {
      if (!this.#isFinished) this.#open()
    } else if (!this.#isReading) this.#next(this.#following)
    else if (!this.#isFinished && scheduler.chance(0.02)) this.#leave(this.#following)
  }

  /** Reads its open session to the end. */
  finish(): void {
    this.#isFinished = true
  }

  /** Leaves its session. */
  leave(): void {
    if (this.#following !== undefined) this.#leave(this.#following)
  }

  #open(): void {
    const { scheduler, open, observer, history: lines } = this.#world
    if (open.length === 0) return
    const engine = scheduler.pick(open)
    const stream = this.#world.pickStream()
    const history = observer.history(stream)
    const follows = scheduler.chance(0.5)
    const query = follows ? { seqNum: 0 } : drawQuery(scheduler, history.now, 'session')
    const since = history.observed.records
    const opening = engine.watch()
    const { mayFail } = this.#world
    this.#isOpening = true
    lines.add(this.name, 'open read', { engine: engine.name, stream, query })
    const opened = (event: string, details?: Record<string, unknown>) => {
      this.#isOpening = false
      opening.stop()
      lines.add(this.name, event, details)
    }
    engine.call(engine.stream(stream).openCursor(query, { heartbeats: scheduler.chance(0.5) }), {
      done: (cursor) => {
        opened('opened')
        if (cursor === undefined) throw new Violation('a session, or an error', 'neither')
        const read = new FollowedRead(history, query, since, opening.window)
        this.#following = {
          engine,
          stream,
          query,
          cursor,
          read,
          mayFail,
          since,
          idle: engine.watch(),
        }
      },
      failed: (error) => {
        opened('not opened', { error: (error as HeadwaterError).code })
        if (HeadwaterError.is(error) && error.code === 'range_not_satisfiable') {
          history.observe(
            'records',
            since,
            `a session of ${JSON.stringify(query)} is opened`,
            String(error),
            (moment) => rejectionContradiction(query, error.tail!, moment, opening.window),
          )
        } else checkFailure(error, { history, since, mayFail, isClosing: !engine.isOpen })
      },
      lost: () => opened('lost'),
    })
  }

  #next(following: Following): void {
    const { engine, cursor } = following
    this.#isReading = true
    const settled = () => {
      this.#isReading = false
    }
    engine.call(Promise.resolve(cursor.next()), {
      done: (event) => {
        settled()
        if (this.#following === following) this.#onEvent(following, event)
      },
      failed: (error) => {
        settled()
        if (this.#following === following) this.#onFailure(following, error)
      },
      lost: () => {
        settled()
        this.#forget(following, 'lost')
      },
    })
  }

  #onEvent(following: Following, event: ReadEvent | undefined): void {
    const { engine, read, idle } = following
    const { history } = this.#world
    if (event?.kind === 'heartbeat') {
      history.add(this.name, 'heartbeat', { tail: event.tail.seqNum })
      return
    }
    idle.stop()
    if (event === undefined) {
      this.#forget(following, 'end of read')
      read.end(idle.window)
      return
    }
    following.idle = engine.watch()
    const seqNums = event.batch.records.map(({ seqNum }) => seqNum)
    history.add(this.name, 'read', { from: seqNums[0], to: seqNums.at(-1), count: seqNums.length })
    read.deliver(event.batch)
  }

  #onFailure(following: Following, error: unknown): void {
    const { engine, stream, mayFail, since } = following
    const history = this.#world.observer.history(stream)
    this.#forget(following, `failed: ${(error as HeadwaterError).code}`)
    checkFailure(error, { history, since, mayFail, isClosing: !engine.isOpen })
  }

  #leave(following: Following): void {
    this.#forget(following, 'left')
    following.cursor.close()
  }

  #forget(following: Following, event: string): void {
    following.idle.stop()
    if (this.#following === following) this.#following = undefined
    this.#world.history.add(this.name, event)
  }
}
