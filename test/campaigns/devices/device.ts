import { connect } from '../../../adapters/client/index.ts'
import { memory } from '../../../adapters/storage/memory/index.ts'
import { type Coordinator, coordinateInThread, type Membership } from '../../../adapters/sync/coordinator.ts'
import { type SyncedStream, syncedStream } from '../../../adapters/sync/index.ts'
import { type FaultyStorage, faultyStorage, type VirtualClock } from '../../../adapters/testing/index.ts'
import { type Engine, type Headwater, open } from '../../../src/index.ts'
import { Prng } from '../../../src/runtime/prng.ts'
import { EngineClock } from '../simulation/engine-clock.ts'
import { SimulatedNetwork } from './network.ts'
import { BASIN, type SimulatedServer, STREAM } from './server.ts'
import type { DeviceSettings } from './settings.ts'
import { ViewCheck } from './view-check.ts'

/** An append of a tab: its records have the text and an index. */
export interface DeviceAppend {
  readonly text: string
  readonly count: number
  /** `unknown` if the tab crashed, or its storage failed, before the append settled. */
  outcome: 'pending' | 'durable' | 'refused' | 'unknown'
}

/** One user's device: a storage that several tabs share, a clock and a network. */
export class Device {
  readonly name: string
  readonly network: SimulatedNetwork
  readonly appends: DeviceAppend[] = []
  readonly tabs: Tab[] = []
  /** Keys of records that the app discarded. */
  readonly discarded = new Set<string>()
  readonly #time: VirtualClock
  readonly #prng: Prng
  readonly #storage = memory()
  readonly #settings: DeviceSettings
  #skewMs: number
  #opened = 0

  constructor(
    name: string,
    time: VirtualClock,
    prng: Prng,
    server: SimulatedServer,
    settings: DeviceSettings,
  ) {
    this.name = name
    this.#time = time
    this.#prng = new Prng(prng.below(2 ** 31))
    this.#settings = settings
    this.network = new SimulatedNetwork(time, new Prng(prng.below(2 ** 31)), () => server.handler)
    this.#skewMs = settings.skewMs === 0 ? 0 : prng.below(2 * settings.skewMs) - settings.skewMs
  }

  async openTab(): Promise<void> {
    const name = `${this.name}.${++this.#opened}`
    this.tabs.push(await Tab.open(name, this, new EngineClock(this.#time, this.#skewMs, false)))
  }

  /** Sets the clock of the device, for tabs that are open and those to come. */
  setClock(byMs: number): void {
    this.#skewMs += byMs
    for (const { clock } of this.tabs) clock.step(byMs)
  }

  get storage(): ReturnType<typeof memory> {
    return this.#storage
  }

  get prng(): Prng {
    return this.#prng
  }

  get tailOffset(): number | undefined {
    return this.#settings.tailOffset
  }
}

interface TabParts {
  readonly hw: Engine
  readonly faulty: FaultyStorage
  readonly client: Headwater
  readonly synced: SyncedStream
  /** What the browser ends with the tab. */
  readonly memberships: readonly Membership[]
}

/** A tab of a device: an engine on the shared storage, a client, and a synced stream with a view. */
export class Tab {
  readonly name: string
  readonly clock: EngineClock
  readonly view: ViewCheck
  readonly #device: Device
  readonly #parts: TabParts
  readonly #watching: { unsubscribe(): void }
  #appended = 0
  #isRestarting = false
  /** The failure of the view, if it failed. */
  failure: unknown

  private constructor(name: string, device: Device, clock: EngineClock, parts: TabParts) {
    this.name = name
    this.clock = clock
    this.#device = device
    this.#parts = parts
    this.view = new ViewCheck(device.discarded)
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
  }

  static async open(name: string, device: Device, clock: EngineClock): Promise<Tab> {
    const random = () => device.prng.next()
    const faulty = faultyStorage(device.storage)
    const hw = await open({ storage: faulty, clock, random })
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
    const synced = syncedStream(client.basin(BASIN).stream(STREAM), hw.basin(BASIN).stream(STREAM), {
      random,
      coordinator,
      ...(device.tailOffset !== undefined && { from: { tailOffset: device.tailOffset } }),
    })
    return new Tab(name, device, clock, { hw, faulty, client, synced, memberships })
  }

  get synced(): SyncedStream {
    return this.#parts.synced
  }

  get local() {
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
    // It fails if the server cannot be reached; the app tries again.
    const end = () => {
      this.#isRestarting = false
    }
    this.synced.mirror.restart().then(end, end)
  }

  /** Simulates the end of the process. */
  async crash(): Promise<void> {
    this.#leave()
    this.#watching.unsubscribe()
    this.clock.stop()
    for (const membership of this.#parts.memberships) membership.leave()
    await this.#parts.faulty.crash()
  }

  async close(): Promise<void> {
    this.#watching.unsubscribe()
    await this.#parts.synced.close()
    await this.#parts.client.close()
    await this.#parts.hw.close()
    this.#leave()
  }

  #leave(): void {
    const { tabs, appends } = this.#device
    tabs.splice(tabs.indexOf(this), 1)
    for (const append of appends) {
      if (append.outcome === 'pending' && append.text.startsWith(`${this.name}/`)) append.outcome = 'unknown'
    }
  }
}
