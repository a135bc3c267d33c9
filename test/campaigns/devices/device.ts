import { connect } from '../../../adapters/client/index.ts'
import { memory } from '../../../adapters/storage/memory/index.ts'
import { type Coordinator, coordinateInThread, type Membership } from '../../../adapters/sync/coordinator.ts'
import { type SyncedStream, syncedStream } from '../../../adapters/sync/index.ts'
import { type FaultyStorage, faultyStorage, type VirtualClock } from '../../../adapters/testing/index.ts'
import { type Engine, type Headwater, open, type Storage, type Stream } from '../../../src/index.ts'
import { Prng } from '../../../src/runtime/prng.ts'
import { EngineClock } from '../simulation/engine-clock.ts'
import { FoldCheck, type FoldCheckOptions } from './fold-check.ts'
import { SimulatedNetwork } from './network.ts'
import type { Sabotage } from './sabotage.ts'
import { BASIN, type SimulatedServer, STREAM } from './server.ts'
import { type DeviceSettings, delaysOf } from './settings.ts'
import { ViewCheck } from './view-check.ts'
import { whileAdvancing } from './virtual-work.ts'

/** An append of a tab: its records have the text and an index. */
export interface DeviceAppend {
  readonly text: string
  readonly count: number
  /** `unknown` if the tab crashed, or its storage failed, before the append settled. */
  outcome: 'pending' | 'durable' | 'refused' | 'unknown'
}

/** What devices share. */
export interface DeviceWorld {
  readonly time: VirtualClock
  readonly server: SimulatedServer
  readonly settings: DeviceSettings
  readonly sabotage: Sabotage
  readonly note: (line: string) => void
  /** Counts a request. Returns false after the last one that is answered. */
  readonly admits: () => boolean
}

/** One user's device: a storage that several tabs share, a clock and a network. */
export class Device {
  readonly name: string
  readonly network: SimulatedNetwork
  readonly appends: DeviceAppend[] = []
  readonly tabs: Tab[] = []
  /** Keys of records that the app discarded. */
  readonly discarded = new Set<string>()
  /** Whether the app has begun the copy again. */
  hasRestarted = false
  readonly #world: DeviceWorld
  readonly #prng: Prng
  readonly #storage = memory()
  /** The version of the app, and so of the reducer of its folds. */
  #version = 1
  #skewMs: number
  #opened = 0

  constructor(name: string, prng: Prng, world: DeviceWorld) {
    const { time, server, settings, admits } = world
    this.name = name
    this.#world = world
    this.#prng = new Prng(prng.below(2 ** 31))
    this.network = new SimulatedNetwork(time, new Prng(prng.below(2 ** 31)), () => server.handler, admits)
    this.#skewMs = settings.skewMs === 0 ? 0 : prng.below(2 * settings.skewMs) - settings.skewMs
  }

  async openTab(): Promise<void> {
    const clock = new EngineClock(this.#world.time, this.#skewMs, false)
    const tab = await Tab.open({
      ...this.#world,
      name: `${this.name}.${++this.#opened}`,
      device: this,
      clock,
      version: this.#version,
      storage: this.#storage,
      prng: this.#prng,
    })
    this.tabs.push(tab)
  }

  /** Sets the clock of the device, for tabs that are open and those to come. */
  setClock(byMs: number): void {
    this.#skewMs += byMs
    for (const { clock } of this.tabs) clock.step(byMs)
  }

  /** Gives tabs to come a new version of the app. Open ones keep theirs. */
  update(): void {
    this.#version++
  }

  /** Ends all tabs at once. What they have stored is left. */
  async crash(): Promise<void> {
    for (const tab of [...this.tabs]) await tab.crash()
  }
}

interface TabOptions extends DeviceWorld {
  readonly name: string
  readonly device: Device
  readonly clock: EngineClock
  readonly version: number
  readonly storage: Storage
  readonly prng: Prng
}

/** What the folds of a tab have in common. */
type FoldOptionsOfTab = Omit<FoldCheckOptions, 'name' | 'source'>

interface TabParts {
  readonly hw: Engine
  readonly faulty: FaultyStorage
  readonly client: Headwater
  readonly synced: SyncedStream
  /** What the browser ends with the tab. */
  readonly memberships: readonly Membership[]
}

/** A tab: an engine on the device's storage, a client, and a synced stream with a view and folds. */
export class Tab {
  readonly name: string
  readonly clock: EngineClock
  readonly view: ViewCheck
  /** A fold over the synced stream, and one over the copy. */
  readonly folds: readonly FoldCheck[]
  readonly #device: Device
  readonly #time: VirtualClock
  readonly #parts: TabParts
  readonly #watching: { unsubscribe(): void }
  #appended = 0
  #isRestarting = false
  /** The failure of the view, if it failed. */
  failure: unknown

  private constructor(
    { name, device, clock, time, server, settings }: TabOptions,
    parts: TabParts,
    folds: FoldOptionsOfTab,
  ) {
    this.name = name
    this.clock = clock
    this.#device = device
    this.#time = time
    this.#parts = parts
    const startsLate = settings.tailOffset !== undefined
    this.view = new ViewCheck(device.discarded, (text) => server.isLeftOut(text, startsLate))
    this.#watching = parts.synced.view$.subscribe({
      next: (view) => {
        try {
          this.view.next(view)
        } catch (error) {
          this.failure ??= error
        }
      },
      error: (error: unknown) => {
        this.failure = error
      },
    })
    const sources = { synced: parts.synced, copy: this.local }
    this.folds = Object.entries(sources).map(
      ([kind, source]) => new FoldCheck({ ...folds, name: `${kind} of ${name}`, source }),
    )
  }

  static async open(options: TabOptions): Promise<Tab> {
    const { device, storage, clock, prng, time, settings, sabotage, version, note } = options
    const random = () => prng.next()
    const rates = delaysOf(settings.storageDelayMs)
    const faulty = faultyStorage(storage, { rates, seed: prng.below(2 ** 31), notifications: 'reliable' })
    const hw = await whileAdvancing(time, open({ storage: faulty, clock, random }))
    const client = await connect({
      url: 'http://server.test',
      fetch: device.network.fetch,
      clock,
      random,
      requestTimeoutMs: 10_000,
    })
    const memberships: Membership[] = []
    const coordinator: Coordinator = (election, candidate) => {
      const membership = coordinateInThread(election, candidate)
      memberships.push(membership)
      return membership
    }
    const remote = client.basin(BASIN).stream(STREAM)
    const used = sabotage.remote?.(remote, new Prng(prng.below(2 ** 31))) ?? remote
    const { tailOffset } = settings
    const synced = syncedStream(used, hw.basin(BASIN).stream(STREAM), {
      random,
      coordinator,
      ...(tailOffset !== undefined && { from: { tailOffset } }),
    })
    sabotage.synced?.(synced, new Prng(prng.below(2 ** 31)))
    const parts = { hw, faulty, client, synced, memberships }
    return new Tab(options, parts, {
      version: sabotage.version?.(version) ?? version,
      reducer: version,
      snapshotEvery: settings.snapshotEvery,
      trimmed: settings.trimmed,
      sabotage,
      prng: new Prng(prng.below(2 ** 31)),
      note,
    })
  }

  get synced(): SyncedStream {
    return this.#parts.synced
  }

  get local(): Stream {
    return this.#parts.hw.basin(BASIN).stream(STREAM)
  }

  append(count: number): void {
    const text = `${this.name}/${this.#appended++}`
    const append: DeviceAppend = { text, count, outcome: 'pending' }
    this.#device.appends.push(append)
    const records = Array.from({ length: count }, (_, index) => `${text}#${index}`)
    this.synced.append(records).then(
      () => {
        if (append.outcome === 'pending') append.outcome = 'durable'
      },
      (error: { mayHaveEffects?: boolean }) => {
        append.outcome = error.mayHaveEffects === false ? 'refused' : 'unknown'
      },
    )
  }

  /** Begins the copy again, unless that is under way. */
  restart(): void {
    if (this.#isRestarting) return
    this.#isRestarting = true
    this.#device.hasRestarted = true
    // It fails if the server cannot be reached; the app tries again.
    const end = () => {
      this.#isRestarting = false
    }
    this.synced.mirror.restart().then(end, end)
  }

  /** Makes the storage answer at once. */
  heal(): void {
    this.#parts.faulty.heal()
  }

  /** Simulates the end of the process. */
  async crash(): Promise<void> {
    this.#leave()
    this.#stopWatching()
    this.clock.stop()
    for (const membership of this.#parts.memberships) membership.leave()
    await this.#parts.faulty.crash()
  }

  async close(): Promise<void> {
    this.#stopWatching()
    await whileAdvancing(this.#time, this.#close())
    this.#leave()
  }

  async #close(): Promise<void> {
    await Promise.all(this.folds.map((fold) => fold.close()))
    await this.#parts.synced.close()
    await this.#parts.client.close()
    await this.#parts.hw.close()
  }

  #stopWatching(): void {
    this.#watching.unsubscribe()
    for (const fold of this.folds) fold.stop()
  }

  #leave(): void {
    const { tabs, appends } = this.#device
    tabs.splice(tabs.indexOf(this), 1)
    for (const append of appends) {
      if (append.outcome === 'pending' && append.text.startsWith(`${this.name}/`)) append.outcome = 'unknown'
    }
  }
}
