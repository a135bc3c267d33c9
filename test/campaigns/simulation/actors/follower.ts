import { HeadwaterError, type ReadEvent, type RecordCursor } from '../../../../src/index.ts'
import type { ClockWindow } from '../../harness/engine-clock.ts'
import { Violation } from '../../harness/violation.ts'
import { type Circumstances, checkFailure } from '../checks/check-failure.ts'
import { FollowedRead } from '../checks/followed-read.ts'
import { rejectionContradiction } from '../checks/read-rules.ts'
import { drawQuery } from '../drawing.ts'
import type { SimulatedEngine } from '../simulated-engine.ts'
import { Actor } from './actor.ts'

interface Following {
  readonly engine: SimulatedEngine
  readonly cursor: RecordCursor
  readonly read: FollowedRead
  readonly circumstances: Omit<Circumstances, 'isClosing'>
  /** Observed since its last event. */
  idle: ClockWindow
}

/** Opens read sessions of all kinds, reads at its own pace, and leaves or stays. */
export class Follower extends Actor {
  protected readonly inFlightMax = 1
  #following: Following | undefined
  #isReading = false

  /** A follower that waits at the tail for further records is idle too. */
  override get isIdle(): boolean {
    if (!super.isIdle) return false
    return this.#following === undefined || (this.#isReading && this.#following.read.isCaughtUp)
  }

  override act(): void {
    const { prng } = this.world
    if (this.#following?.engine.isCrashed) this.#forget(this.#following, 'session lost')
    if (this.#following === undefined) super.act()
    else if (!this.#isReading) this.#next(this.#following)
    else if (!this.isFinished && prng.chance(0.02)) this.leave()
  }

  /** Leaves its session, if it has one. */
  leave(): void {
    const following = this.#following
    if (following === undefined) return
    this.#forget(following, 'left')
    following.cursor.close()
  }

  protected begin(engine: SimulatedEngine): void {
    const { prng, observer, mayFail, time } = this.world
    const history = observer.history(this.world.pickStream())
    const query = prng.chance(0.5) ? { seqNum: 0 } : drawQuery(prng, history.now, 'session')
    const since = history.observed.records
    const opening = engine.clock.watch()
    const calledAt = time.now()
    this.call({
      engine,
      history,
      event: 'open read',
      details: { query },
      promise: engine.stream(history.name).openCursor(query, { heartbeats: prng.chance(0.5) }),
      done: (cursor) => {
        engine.clock.unwatch(opening)
        if (cursor === undefined) throw new Violation('a session, or an error', 'neither')
        const read = new FollowedRead(history, query, since, opening, calledAt)
        const circumstances = { history, since, mayFail }
        this.#following = { engine, cursor, read, circumstances, idle: engine.clock.watch() }
      },
      failed: (error, circumstances) => {
        engine.clock.unwatch(opening)
        if (HeadwaterError.is(error) && error.code === 'range_not_satisfiable') {
          const texts = [`a session of ${JSON.stringify(query)} is opened`, String(error)] as const
          history.observe('records', since, texts, (moment) =>
            rejectionContradiction(query, 'session', error.tail!, moment, opening),
          )
        } else checkFailure(error, circumstances)
      },
      lost: () => engine.clock.unwatch(opening),
    })
  }

  #next(following: Following): void {
    const { engine, cursor, circumstances } = following
    this.#isReading = true
    const settled = () => {
      this.#isReading = false
      return this.#following === following
    }
    engine.call(Promise.resolve(cursor.next()), {
      done: (event) => {
        if (settled()) this.#onEvent(following, event)
      },
      failed: (error) => {
        if (!settled()) return
        this.#forget(following, `session failed: ${(error as HeadwaterError).code}`)
        checkFailure(error, { ...circumstances, isClosing: !engine.isOpen })
      },
      lost: () => {
        if (settled()) this.#forget(following, 'session lost')
      },
    })
  }

  #onEvent(following: Following, event: ReadEvent | undefined): void {
    const { engine, read, idle } = following
    if (event?.kind === 'heartbeat') {
      this.note('heartbeat', { tail: event.tail.seqNum })
      return
    }
    engine.clock.unwatch(idle)
    if (event === undefined) {
      this.#forget(following, 'end of read')
      read.end(idle, this.world.time.now())
      return
    }
    following.idle = engine.clock.watch()
    const { records } = event.batch
    this.note('read', { from: records[0]?.seqNum, to: records.at(-1)?.seqNum })
    read.deliver(event.batch)
  }

  #forget(following: Following, event: string): void {
    following.engine.clock.unwatch(following.idle)
    if (this.#following === following) this.#following = undefined
    this.note(event)
  }
}
