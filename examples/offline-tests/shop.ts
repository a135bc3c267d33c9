import { S2, type S2Basin } from '@s2-dev/streamstore'
import { type Headwater, open } from 'headwater'
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

/** A shop for one test: a service in this process whose storage and network fail as the test says, and an hour passes when the test says so. */
export class Shop {
  readonly clock: VirtualClock = virtualClock()
  readonly storage: FaultyStorage
  readonly network: FaultyHandler
  readonly basin: S2Basin
  readonly #service: ReturnType<typeof inProcessService>
  readonly #stops: (() => Promise<unknown>)[] = []
  #hw: Headwater

  private constructor(storage: FaultyStorage, hw: Headwater, clock: VirtualClock, seed: number) {
    this.storage = storage
    this.clock = clock
    this.#hw = hw
    // Whichever engine is there: after a crash it is another one.
    this.network = faultyHandler((request) => createHandler(this.#hw, { open: true })(request), {
      clock,
      seed,
    })
    this.#service = inProcessService(this.network)
    this.basin = this.#service.connect(S2).basin('web-shop')
  }

  static async open(seed = 1): Promise<Shop> {
    const [storage, clock] = [faultyStorage(memory(), { seed }), virtualClock()]
    const hw = await open({ storage, clock })
    await hw.ensureBasin('web-shop')
    for (const stream of ['orders', 'shipments']) await hw.basin('web-shop').ensureStream(stream)
    return new Shop(storage, hw, clock, seed)
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
    // One that fails does so to whoever looks at `ended`.
    ended.catch(() => {})
    this.#stops.push(() => stop().catch(() => {}))
    return { ended, stop }
  }

  /** The first shipments, when there are so many. */
  shipped(count: number): Promise<Shipment[]> {
    return firstValueFrom(
      this.#stream('shipments')
        .read({ seqNum: 0 })
        .text$.pipe(
          // Records of commands have one header, without a name.
          filter(({ headers }) => headers.length === 0),
          map(({ body }): Shipment => JSON.parse(body)),
          take(count),
          toArray(),
        ),
    )
  }

  /** How many shipments there are. */
  async shipmentCount(): Promise<number> {
    const { seqNum } = await this.#stream('shipments').checkTail()
    if (seqNum === 0) return 0
    const { text } = await this.#stream('shipments').readBatch({ seqNum: 0 })
    return text.filter(({ headers }) => headers.length === 0).length
  }

  /** The process of the service dies, and another one takes its place. */
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
