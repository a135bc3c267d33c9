import { createHash } from 'node:crypto'
import { memory } from '../../../adapters/storage/memory/index.ts'
import { type VirtualClock, virtualClock } from '../../../adapters/testing/index.ts'
import type { Basin, Stream } from '../../../src/index.ts'
import type { Prng } from '../../../src/runtime/prng.ts'
import type { Storage, StorageSession } from '../../../src/storage/contract.ts'
import { HeldCalls, type Holding } from './held-storage.ts'
import { Observer } from './observer.ts'
import type { Settings } from './settings.ts'
import { SimulatedEngine } from './simulated-engine.ts'
import { Violation } from './violation.ts'

/** Defects that a test injects, to check that they are detected. */
export interface Sabotage {
  readonly storage?: (storage: Storage, prng: Prng) => Storage
  readonly stream?: (stream: Stream, prng: Prng) => Stream
  readonly basin?: (basin: Basin, prng: Prng) => Basin
  /** Whether engines do not use the clock of the storage. */
  readonly ignoresSharedClock?: boolean
}

/** Everything that a run consists of. */
export class World {
  readonly basin = 'basin'
  readonly time: VirtualClock = virtualClock({ now: 1_000_000_000_000 })
  readonly calls = new HeldCalls()
  readonly history = new History()
  readonly settings: Settings
  readonly scheduler: Prng
  readonly engines: SimulatedEngine[] = []
  readonly observer: Observer
  /** Nothing fails while a run begins and while it ends. */
  isFaultFree = true
  #violation: Violation | undefined
  readonly #storage: Storage
  readonly #sabotage: Sabotage
  #latestTime = 0
  #deletionTime = 0
  #engineNumber = 0
  #attemptNumber = 0

  private constructor(
    settings: Settings,
    scheduler: Prng,
    parts: { readonly storage: Storage; readonly observed: StorageSession; readonly sabotage: Sabotage },
  ) {
    const { streams, created, trimGraceMs } = settings
    this.settings = settings
    this.scheduler = scheduler
    this.#storage = parts.storage
    this.#sabotage = parts.sabotage
    const latestTime = () => this.latestTime
    const onFreed = (stream: string, seqNum: number) =>
      this.history.add('storage', 'freed', { stream, seqNum })
    const { basin } = this
    const deletionTime = () => this.#latestDeletionTime()
    this.observer = new Observer(parts.observed, {
      basin,
      streams: [...streams, ...created],
      trimGraceMs,
      onFreed,
      onRemoved: (stream, event) => this.history.add('storage', event, { stream }),
      latestTime,
      deletionTime,
    })
  }

  static async create(settings: Settings, scheduler: Prng, sabotage: Sabotage = {}): Promise<World> {
    const data = memory()
    const observed = await data.open({ clock: virtualClock(), onLogChanged: () => {} })
    const storage = sabotage.storage?.(data, scheduler) ?? data
    return new World(settings, scheduler, { storage: asSettings(storage, settings), observed, sabotage })
  }

  get holding(): Holding {
    return {
      calls: this.calls,
      holdsAnswer: () => this.scheduler.chance(this.settings.holdAnswers),
      onChange: (operation) => this.guardAsync(() => this.observer.checkChanges(operation)),
    }
  }

  /** Whether engines use the clock of the storage. */
  get hasSharedClock(): boolean {
    return this.settings.hasSharedClock && this.#sabotage.ignoresSharedClock !== true
  }

  /** The latest time that any engine has used. Read before a clock is set or stops. */
  get latestTime(): number {
    this.#lookAtClocks()
    return this.#latestTime
  }

  #latestDeletionTime(): number {
    this.#lookAtClocks()
    return this.settings.hasSharedClock ? this.time.now() : this.#deletionTime
  }

  #lookAtClocks(): void {
    for (const { clock, hasEnded } of this.engines) {
      if (hasEnded) continue
      this.#latestTime = Math.max(this.#latestTime, clock.engineTime)
      this.#deletionTime = Math.max(this.#deletionTime, clock.deletionTime)
    }
  }

  get violation(): Violation | undefined {
    return this.#violation
  }

  /** Whether a call that begins now may encounter failures of the storage. */
  get mayFail(): boolean {
    return this.settings.faultRate > 0 && !this.isFaultFree
  }

  /** The open engines. */
  get open(): readonly SimulatedEngine[] {
    return this.engines.filter(({ isOpen }) => isOpen)
  }

  /** The names of all streams. */
  get streams(): readonly string[] {
    return [...this.settings.streams, ...this.settings.created]
  }

  /** Picks a stream, the first one more often. */
  pickStream(): string {
    const { streams, created } = this.settings
    if (created.length > 0 && this.scheduler.chance(0.3)) return this.scheduler.pick(created)
    return this.scheduler.chance(0.5) ? streams[0]! : this.scheduler.pick(streams)
  }

  /** See `AttemptGroup.since`. */
  sessionsSince(stream: string): number {
    return this.settings.isShared ? 0 : this.observer.history(stream).observed.records
  }

  nextAttemptId(): string {
    return `a${++this.#attemptNumber}`
  }

  streamOf(stream: Stream): Stream {
    return this.#sabotage.stream?.(stream, this.scheduler) ?? stream
  }

  basinOf(engine: SimulatedEngine): Basin {
    const basin = engine.hw.basin(this.basin)
    return this.#sabotage.basin?.(basin, this.scheduler) ?? basin
  }

  async openEngine(): Promise<SimulatedEngine> {
    const engine = await SimulatedEngine.open(this, `e${++this.#engineNumber}`, this.#storage)
    this.engines.push(engine)
    this.history.add(engine.name, 'opened')
    return engine
  }

  /** Keeps the first violation. The run ends with the step that found it. */
  guard(check: () => void): void {
    try {
      check()
    } catch (error) {
      this.#record(error)
    }
  }

  async guardAsync(check: () => Promise<void>): Promise<void> {
    try {
      await check()
    } catch (error) {
      this.#record(error)
    }
  }

  #record(error: unknown): void {
    this.#violation ??=
      error instanceof Violation ? error : new Violation('checks that work', String((error as Error).stack))
  }
}

function asSettings(storage: Storage, { isShared, notifications }: Settings): Storage {
  return {
    manifest: { ...storage.manifest, shared: isShared, notifications },
    open: (context) =>
      storage.open(notifications === 'none' ? { ...context, onLogChanged: () => {} } : context),
  }
}

/** All events of a run as JSON lines. Two runs with the same seed have the same history. */
class History {
  readonly #lines: string[] = []
  #step = 0

  beginStep(step: number): void {
    this.#step = step
  }

  add(actor: string, event: string, details: Readonly<Record<string, unknown>> = {}): void {
    this.#lines.push(JSON.stringify({ step: this.#step, actor, event, ...details }))
  }

  get lines(): readonly string[] {
    return this.#lines
  }

  get digest(): string {
    return createHash('sha256').update(this.#lines.join('\n')).digest('hex').slice(0, 16)
  }
}
