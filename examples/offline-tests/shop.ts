import { S2, type S2Basin } from '@s2-dev/streamstore'
import { type Engine, open } from 'headwater'
import { createHandler } from 'headwater/http'
import { memory } from 'headwater/memory'
import {
  type FaultyHandler,
  type FaultyStorage,
  faultyHandler,
  faultyStorage,
  inProcessService,
  type VirtualClock,
  virtualClock,
} from 'headwater/testing'
import { filter, firstValueFrom, map, take, toArray } from 'rxjs'
import { processOrders, type Shipment } from './order-processor.ts'

/**
 * A shop for one test: an in-process service. The test controls the time and the faults of storage and
 * network.
 */
export class Shop {
  readonly clock: VirtualClock = virtualClock()
  readonly storage: FaultyStorage
  readonly network: FaultyHandler
  readonly basin: S2Basin
  readonly #service: ReturnType<typeof inProcessService>
  readonly #stops: (() => Promise<unknown>)[] = []
  #hw: Engine

  private constructor(storage: FaultyStorage, hw: Engine, clock: VirtualClock) {
    this.storage = storage
    this.clock = clock
    this.#hw = hw
    // The current engine; a crash replaces it.
    this.network = faultyHandler((request) => createHandler(this.#hw, { auth: 'none' })(request), { clock })
    this.#service = inProcessService(this.network)
    this.basin = this.#service.connect(S2).basin('web-shop')
  }

  static async open(): Promise<Shop> {
    const [storage, clock] = [faultyStorage(memory()), virtualClock()]
    const hw = await open({ storage, clock })
    await hw.ensureBasin('web-shop')
    for (const stream of ['orders', 'shipments']) await hw.basin('web-shop').ensureStream(stream)
    return new Shop(storage, hw, clock)
  }

  async order(...goods: string[]): Promise<void> {
    await this.#stream('orders').append(goods)
  }

  /** Starts a processor. */
  start(name: string): {
    ended: Promise<'stopped' | 'superseded'>
    stop(): Promise<'stopped' | 'superseded'>
  } {
    const control = new AbortController()
    const ended = processOrders(this.basin, name, control.signal)
    const stop = () => {
      control.abort()
      return ended
    }
    // Failures are reported by `ended`.
    ended.catch(() => {})
    this.#stops.push(() => stop().catch(() => {}))
    return { ended, stop }
  }

  /** Resolves to the first `count` shipments once they exist. */
  shipped(count: number): Promise<Shipment[]> {
    return firstValueFrom(
      this.#stream('shipments')
        .follow({ seqNum: 0 }, { create: true })
        .records$.pipe(
          // Commands have one header with an empty name.
          filter(({ headers }) => headers.length === 0),
          map(({ body }): Shipment => JSON.parse(body)),
          take(count),
          toArray(),
        ),
    )
  }

  /** Resolves to the number of shipments. */
  async shipmentCount(): Promise<number> {
    const { seqNum } = await this.#stream('shipments').checkTail()
    if (seqNum === 0) return 0
    const { records } = await this.#stream('shipments').readBatch()
    return records.filter(({ headers }) => headers.length === 0).length
  }

  /** Crashes the service and starts it again. */
  async crashAndRestart(): Promise<void> {
    const dead = this.#hw
    await this.storage.crash()
    this.#hw = await open({ storage: this.storage, clock: this.clock })
    await dead.close()
  }

  async close(): Promise<void> {
    this.storage.heal()
    this.network.heal()
    for (const stop of this.#stops) await stop()
    this.#service.close()
    await this.#hw.close()
  }

  #stream(name: string) {
    return this.#hw.basin('web-shop').stream(name)
  }
}
