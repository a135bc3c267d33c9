import { memory } from '../../../adapters/storage/memory/index.ts'
import { virtualClock } from '../../../adapters/testing/index.ts'
import type { Stream } from '../../../src/index.ts'
import { Prng } from '../../../src/runtime/random.ts'
import type { Storage, StorageSession } from '../../../src/storage/contract.ts'
import { type PlayOptions, Scheduler } from '../harness/scheduler.ts'
import { HeldCalls, type Holding } from './held-storage.ts'
import { Observer } from './observer.ts'
import { type Settings, settingsOf } from './settings.ts'
import { SimulatedEngine } from './simulated-engine.ts'

/** Defects that a test injects, to check that they are detected. */
export interface Sabotage {
  readonly storage?: (storage: Storage) => Storage
  readonly stream?: (stream: Stream) => Stream
  /** Whether engines do not use the clock of the storage. */
  readonly ignoresSharedClock?: boolean
}

/** Everything that a run consists of. */
export class World extends Scheduler {
  readonly basin = 'basin'
  readonly calls = new HeldCalls()
  readonly settings: Settings
  readonly engines: SimulatedEngine[] = []
  readonly observer: Observer
  /** Nothing fails while a run begins and while it ends. */
  isFaultFree = true
  readonly #storage: Storage
  readonly #sabotage: Sabotage
  #attempts = 0

  private constructor(options: PlayOptions, storage: Storage, observed: StorageSession, sabotage: Sabotage) {
    super(options)
    // Not the generator of the run, so that an additional setting does not change it.
    const settings = settingsOf(new Prng(options.seed ^ 0x5eed_5eed))
    this.settings = settings
    const { isShared, notifications } = settings
    // A generator of its own, because it is drawn from outside of the steps.
    const prng = new Prng(options.seed)
    this.#storage = {
      manifest: { ...storage.manifest, shared: isShared, notifications },
      open: (context) => {
        const onLogChanged = (logId: string) => {
          if (notifications === 'none') return
          context.onLogChanged(logId)
          // Notifications may be repeated.
          if (this.mayFail && prng.chance(settings.faultRate)) context.onLogChanged(logId)
        }
        return storage.open({ ...context, onLogChanged })
      },
    }
    this.#sabotage = sabotage
    this.observer = new Observer(observed, this)
  }

  static async create(options: PlayOptions, sabotage: Sabotage): Promise<World> {
    const data = memory()
    const observed = await data.open({ clock: virtualClock(), onLogChanged: () => {} })
    return new World(options, sabotage.storage?.(data) ?? data, observed, sabotage)
  }

  get holding(): Holding {
    return {
      calls: this.calls,
      holdsAnswer: () => this.prng.chance(this.settings.holdAnswers),
      onChange: (operation) => this.guardAsync(() => this.observer.checkChanges(operation)),
    }
  }

  /** Whether engines use the clock of the storage. */
  get usesSharedClock(): boolean {
    return this.settings.hasSharedClock && this.#sabotage.ignoresSharedClock !== true
  }

  /** The latest time that any engine has used. */
  get latestTime(): number {
    return Math.max(0, ...this.engines.map(({ clock }) => clock.latestTime))
  }

  /** The latest time by which any engine may have deleted what has expired. */
  get deletionTime(): number {
    if (this.settings.hasSharedClock) return this.time.now()
    return Math.max(0, ...this.engines.map(({ clock }) => clock.latestDeletionTime))
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
    if (created.length > 0 && this.prng.chance(0.3)) return this.prng.pick(created)
    return this.prng.chance(0.5) ? streams[0]! : this.prng.pick(streams)
  }

  nextAttemptId(): string {
    return `a${++this.#attempts}`
  }

  streamOf(stream: Stream): Stream {
    return this.#sabotage.stream?.(stream) ?? stream
  }

  async openEngine(): Promise<void> {
    const engine = await SimulatedEngine.open(this, `e${this.engines.length + 1}`, this.#storage)
    this.engines.push(engine)
    this.note(engine.name, 'opened')
  }
}
