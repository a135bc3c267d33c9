import type { HeadwaterError } from '../../../../src/index.ts'
import type { StreamHistory } from '../../model/stream-history.ts'
import { type Circumstances, checkFailure } from '../checks/check-failure.ts'
import type { SimulatedEngine } from '../simulated-engine.ts'
import type { World } from '../world.ts'

/** A call of an engine by an actor. */
interface ActorCall<Result> {
  readonly engine: SimulatedEngine
  readonly history: StreamHistory
  readonly event: string
  readonly details?: object
  readonly promise: Promise<Result>
  readonly done: (result: Result) => void
  /** Checks a failure. By default it must have a reason. */
  readonly failed?: (error: unknown, circumstances: Circumstances) => void
  /** The engine died before the call settled. */
  readonly lost?: () => void
}

/** A user of the engines, with one or several calls at a time. */
export abstract class Actor {
  readonly name: string
  protected readonly world: World
  protected inFlight = 0
  protected isFinished = false

  constructor(name: string, world: World) {
    this.name = name
    this.world = world
  }

  /** Whether it waits for nothing. At the end of a run, every actor must be idle. */
  get isIdle(): boolean {
    return this.inFlight === 0
  }

  /** The most calls at a time. */
  protected abstract readonly inFlightMax: number

  /** Makes a call through the engine, if it wants to. */
  protected abstract begin(engine: SimulatedEngine): void

  /** Performs an action if one is possible. */
  act(): void {
    const { open, prng } = this.world
    if (this.isFinished || this.inFlight >= this.inFlightMax || open.length === 0) return
    this.begin(prng.pick(open))
  }

  /** Begins nothing new and ends what is open. */
  finish(): void {
    this.isFinished = true
  }

  protected call<Result>(call: ActorCall<Result>): void {
    const { engine, history, event, details, promise } = call
    const { mayFail } = this.world
    const since = history.observed.records
    this.inFlight++
    this.note(event, { engine: engine.name, stream: history.name, ...details })
    engine.call(promise, {
      done: (result) => {
        this.inFlight--
        this.note(`${event}: done`)
        call.done(result)
      },
      failed: (error) => {
        this.inFlight--
        this.note(`${event}: ${(error as HeadwaterError).code}`)
        const circumstances = { history, since, mayFail, isClosing: !engine.isOpen }
        if (call.failed === undefined) checkFailure(error, circumstances)
        else call.failed(error, circumstances)
      },
      lost: () => {
        this.inFlight--
        this.note(`${event}: lost`)
        call.lost?.()
      },
    })
  }

  protected note(event: string, details?: Record<string, unknown>): void {
    this.world.note(this.name, event, details)
  }
}
