import type { AppendSession, HeadwaterError } from '../../../../src/index.ts'
import { type AttemptGroup, inputOf } from '../append-attempt.ts'
import { checkFailure } from '../checks/check-failure.ts'
import { drawBatch } from '../drawing.ts'
import type { SimulatedEngine } from '../simulated-engine.ts'
import type { World } from '../world.ts'
import { type Actor, Closings } from './actor.ts'
import type { Appending } from './appending.ts'

const IN_FLIGHT_MAX = 6

interface OpenSession {
  readonly engine: SimulatedEngine
  readonly stream: string
  readonly session: AppendSession
  readonly group: AttemptGroup
}

/** Appends through sessions, several at a time. A failure ends a session, and another one is opened. */
export class SessionWriter implements Actor {
  readonly name: string
  readonly #world: World
  readonly #appending: Appending
  #open: OpenSession | undefined
  #opening = false
  #inFlight = 0
  readonly #closings = new Closings()
  #isFinished = false

  constructor(name: string, world: World, appending: Appending) {
    this.name = name
    this.#world = world
    this.#appending = appending
  }

  get isIdle(): boolean {
    return this.#inFlight === 0 && this.#closings.areDone && !this.#opening && this.#open === undefined
  }

  act(): void {
    const { scheduler } = this.#world
    if (this.#isFinished || this.#opening) return
    if (this.#open?.engine.isCrashed) this.#open = undefined
    if (this.#open === undefined) this.#openSession()
    else if (scheduler.chance(0.08)) this.#close()
    else
      for (let times = scheduler.pick([1, 1, 3]); times > 0 && this.#open; times--) this.#submit(this.#open)
  }

  finish(): void {
    this.#isFinished = true
    this.#close()
  }

  #openSession(): void {
    const { scheduler, open, history, observer, mayFail } = this.#world
    if (open.length === 0) return
    const engine = scheduler.pick(open)
    const stream = this.#world.pickStream()
    const since = this.#world.sessionsSince(stream)
    const requestedAt = observer.history(stream).observed.records
    this.#opening = true
    history.add(this.name, 'open session', { engine: engine.name, stream })
    engine.call(engine.stream(stream).appendSession(), {
      done: (session) => {
        this.#opening = false
        this.#open = { engine, stream, session, group: { attempts: [], since } }
        if (this.#isFinished) this.#close()
      },
      failed: (error) => {
        this.#opening = false
        history.add(this.name, 'no session', { error: (error as HeadwaterError).code })
        const isClosing = !engine.isOpen
        checkFailure(error, {
          history: observer.history(stream),
          since: requestedAt,
          mayFail,
          isClosing,
        })
      },
      lost: () => {
        this.#opening = false
      },
    })
  }

  #submit(open: OpenSession): void {
    if (this.#inFlight >= IN_FLIGHT_MAX) return
    const { scheduler, settings } = this.#world
    const { engine, stream, session, group } = open
    const id = this.#world.nextAttemptId()
    const tail = this.#appending.knownState(stream).tail(scheduler)
    const records = drawBatch({
      prng: scheduler,
      id,
      now: engine.clock.engineTime,
      tail,
      largeBodies: settings.largeBodies,
    })
    const conditions = this.#appending.drawConditions(stream, 0.08, 0.1)
    this.#inFlight++
    this.#appending.begin(
      { actor: this.name, engine, stream, id, records, conditions, group, ordersAcks: true },
      async () => (await session.submit(records.map(inputOf), conditions)).ack(),
      (ack) => ack,
      (isAcknowledged) => {
        this.#inFlight--
        if (!isAcknowledged && this.#open === open) this.#close()
      },
    )
  }

  #close(): void {
    const open = this.#open
    this.#open = undefined
    if (open !== undefined) this.#closings.begin(open.engine, () => open.session.close())
  }
}
