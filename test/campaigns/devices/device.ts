import { connect } from '../../../adapters/client/index.ts'
import { memory } from '../../../adapters/storage/memory/index.ts'
import { type SyncedStream, syncedStream } from '../../../adapters/sync/index.ts'
import { type FaultyStorage, faultyStorage } from '../../../adapters/testing/index.ts'
import {
  type Engine,
  type Headwater,
  open,
  type SequencedRecord,
  type Storage,
  type Stream,
} from '../../../src/index.ts'
import { Prng } from '../../../src/runtime/random.ts'
import { storageFaultsAtRandom } from '../../support/random-faults.ts'
import { EngineClock } from '../harness/engine-clock.ts'
import type { Scheduler } from '../harness/scheduler.ts'
import type { StoredLog } from '../model/stream-history.ts'
import { FoldCheck } from './fold-check.ts'
import { SimulatedNetwork } from './network.ts'
import { BASIN, type SimulatedServer, STREAM } from './server.ts'
import { type DeviceSettings, delaysOf } from './settings.ts'
import { ViewCheck } from './view-check.ts'

/** What a test breaks, to show that the checks find it. */
export interface Sabotage {
  /** Replaces the stream of the server, as a tab uses it. */
  readonly remote?: (remote: Stream) => Stream
  /** Changes a synced stream in place. */
  readonly synced?: (synced: SyncedStream) => void
  /** Replaces the storage of the server. */
  readonly storage?: (storage: Storage) => Storage
}

/** An append of a tab: its records have the text and an index. */
export interface DeviceAppend {
  readonly text: string
  readonly count: number
  /** `unknown` if the tab crashed, or its storage failed, before the append settled. */
  outcome: 'pending' | 'durable' | 'refused' | 'unknown'
}

/** What devices share. */
export interface DeviceWorld {
  readonly scheduler: Scheduler
  readonly server: SimulatedServer
  readonly settings: DeviceSettings
  readonly sabotage: Sabotage
  /** The texts of records that the app discarded. */
  readonly parked: ReadonlySet<string>
  /** Counts a request. Returns false after the last one that is answered. */
  readonly admits: () => boolean
}

/** One user's device: a storage that several tabs share, a clock and a network. */
export class Device {
  readonly name: string
  readonly world: DeviceWorld
  readonly network: SimulatedNetwork
  readonly appends: DeviceAppend[] = []
  readonly tabs: Tab[] = []
  readonly storage = memory()
  readonly prng: Prng
  /** Whether the app has begun the copy again. */
  hasRestarted = false
  #skewMs: number
  #opened = 0

  constructor(name: string, world: DeviceWorld) {
    const { scheduler, server, settings, admits } = world
    const { prng, time } = scheduler
    this.name = name
    this.world = world
    this.prng = new Prng(prng.below(2 ** 31))
    this.network = new SimulatedNetwork(time, new Prng(prng.below(2 ** 31)), () => server.handler, admits)
    this.#skewMs = settings.skewMs === 0 ? 0 : prng.below(2 * settings.skewMs) - settings.skewMs
  }

  async openTab(): Promise<void> {
    const clock = new EngineClock(this.world.scheduler.time, this.#skewMs, false)
    this.tabs.push(await Tab.open(`${this.name}.${++this.#opened}`, this, clock))
  }

  /** Sets the clock of the device, for tabs that are open and those to come. */
  setClock(byMs: number): void {
    this.#skewMs += byMs
    for (const { clock } of this.tabs) clock.step(byMs)
  }

  /** Ends all tabs at once. What they have stored is left. */
  async crash(): Promise<void> {
    for (const tab of [...this.tabs]) await tab.crash()
  }
}

interface TabParts {
  readonly hw: Engine
  readonly faulty: FaultyStorage
  readonly client: Headwater
  readonly synced: SyncedStream
}

/** A tab: an engine on the device's storage, a client, and a synced stream with a view and a fold. */
export class Tab {
  readonly name: string
  readonly clock: EngineClock
  readonly view: ViewCheck
  readonly fold: FoldCheck
  readonly #device: Device
  readonly #parts: TabParts
  readonly #watching: { unsubscribe(): void }
  #appended = 0
  #isRestarting = false
  /** The failure of the view, if it failed. */
  failure: unknown

  private constructor(name: string, device: Device, clock: EngineClock, parts: TabParts) {
    const { server, settings, parked } = device.world
    const { snapshotEvery, trimmed, tailOffset } = settings
    this.name = name
    this.clock = clock
    this.#device = device
    this.#parts = parts
    this.view = new ViewCheck((text) => {
      const isLeftOut = ({ seqNum }: SequencedRecord, life: StoredLog) =>
        tailOffset !== undefined || seqNum < life.trimPoint || life !== server.life || server.isMissing
      return parked.has(text) || server.hasStored(text, isLeftOut)
    })
    const fail = (error: unknown) => {
      this.failure ??= error
    }
    this.#watching = parts.synced.view$.subscribe({
      next: (view) => {
        try {
          this.view.next(view)
        } catch (error) {
          fail(error)
        }
      },
      error: fail,
    })
    this.fold = new FoldCheck(parts.synced, snapshotEvery, trimmed)
  }

  static async open(name: string, device: Device, clock: EngineClock): Promise<Tab> {
    const { storage, prng, network, world } = device
    const { scheduler, settings, sabotage } = world
    const { storageDelayMs, tailOffset } = settings
    const random = () => prng.next()
    const faulty = faultyStorage(storage, { notifications: 'reliable' })
    storageFaultsAtRandom(faulty, prng.below(2 ** 31), delaysOf(storageDelayMs))
    const hw = await scheduler.whileAdvancing(open({ storage: faulty, clock, random }))
    const url = 'http://server.test'
    const client = await connect({ url, fetch: network.fetch, clock, random, requestTimeoutMs: 10_000 })
    const remote = client.basin(BASIN).stream(STREAM)
    const synced = syncedStream(sabotage.remote?.(remote) ?? remote, hw.basin(BASIN).stream(STREAM), {
      random,
      ...(tailOffset !== undefined && { from: { tailOffset } }),
    })
    sabotage.synced?.(synced)
    return new Tab(name, device, clock, { hw, faulty, client, synced })
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
    const { faulty, synced, client } = this.#parts
    this.#leave()
    this.#stopWatching()
    this.clock.stop()
    await faulty.crash()
    // Nothing can be stored any more: what is left ends its requests, and other tabs take over.
    for (const part of [synced, client]) part.close().catch(() => {})
  }

  async close(): Promise<void> {
    const { synced, client, hw } = this.#parts
    this.#stopWatching()
    const closeAll = async () => {
      for (const part of [this.fold, synced, client, hw]) await part.close()
    }
    await this.#device.world.scheduler.whileAdvancing(closeAll())
    this.#leave()
  }

  #stopWatching(): void {
    this.#watching.unsubscribe()
    this.fold.stop()
  }

  #leave(): void {
    const { tabs, appends } = this.#device
    tabs.splice(tabs.indexOf(this), 1)
    for (const append of appends)
      if (append.outcome === 'pending' && append.text.startsWith(`${this.name}/`)) append.outcome = 'unknown'
  }
}
