import { createHandler } from '../../../adapters/http/index.ts'
import { memory } from '../../../adapters/storage/memory/index.ts'
import { type FaultyStorage, faultyStorage } from '../../../adapters/testing/index.ts'
import { type Engine, open, type SequencedRecord, type Storage, type Stream } from '../../../src/index.ts'
import { Prng } from '../../../src/runtime/random.ts'
import { decodeRecords } from '../../../src/storage/block-codec.ts'
import { storageFaultsAtRandom } from '../../support/random-faults.ts'
import { wrapped } from '../../support/wrapped-storage.ts'
import { EngineClock } from '../harness/engine-clock.ts'
import type { Scheduler } from '../harness/scheduler.ts'
import { StoredLog, textOf } from '../model/stream-history.ts'
import { type DeviceSettings, delaysOf } from './settings.ts'

export const BASIN = 'devices'
export const STREAM = 'room'

/** The header of producers, which a server or proxy of another version ignores. */
const PRODUCER_HEADER = 'headwater-append'

interface RunningServer {
  readonly hw: Engine
  readonly faulty: FaultyStorage
  readonly clock: EngineClock
  readonly handler: (request: Request) => Promise<Response>
}

/** The server that all devices share. It can crash, and loses nothing that it acknowledged. */
export class SimulatedServer {
  /** The incarnations of the stream, from its creation to its deletion. */
  readonly lives: StoredLog[] = []
  readonly #scheduler: Scheduler
  readonly #prng: Prng
  readonly #settings: DeviceSettings
  readonly #storage: Storage
  #isMissing = true
  #skewMs = 0
  #running: RunningServer | undefined

  constructor(scheduler: Scheduler, settings: DeviceSettings, sabotage: (storage: Storage) => Storage) {
    this.#scheduler = scheduler
    this.#prng = new Prng(scheduler.prng.below(2 ** 31))
    this.#settings = settings
    // The lives have what is stored, whatever a sabotaged storage says.
    const recorded = wrapped(memory(), {}, (session) => ({
      append: async (request) => {
        await session.append(request)
        this.#record(
          request.logId,
          request.blocks.flatMap(({ data }) => decodeRecords(data)),
          request.head.trimPoint,
        )
      },
    }))
    this.#storage = sabotage(recorded)
  }

  get handler(): ((request: Request) => Promise<Response>) | undefined {
    return this.#running?.handler
  }

  get isRunning(): boolean {
    return this.#running !== undefined
  }

  /** Whether the stream was deleted, and not created again by a step. */
  get isMissing(): boolean {
    return this.#isMissing
  }

  /** Whether any records were removed, by a trim or with the stream. */
  get hasRemoved(): boolean {
    return this.isMissing || this.lives.length > 1 || this.life.trimPoint > 0
  }

  /** The life of the stream that it had last. */
  get life(): StoredLog {
    return this.lives.at(-1)!
  }

  /** Whether a record with this text was ever stored, in a place that the filter selects. */
  hasStored(
    text: string,
    isThere: (record: SequencedRecord, life: StoredLog) => boolean = () => true,
  ): boolean {
    return this.lives.some((life) =>
      life.records.some((record) => isThere(record, life) && textOf(record.body) === text),
    )
  }

  async start(): Promise<void> {
    const { producers, storageDelayMs } = this.#settings
    const clock = new EngineClock(this.#scheduler.time, this.#skewMs, false)
    const faulty = faultyStorage(this.#storage, { notifications: 'reliable' })
    storageFaultsAtRandom(faulty, this.#prng.below(2 ** 31), delaysOf(storageDelayMs))
    const random = () => this.#prng.next()
    const hw = await this.#within(open({ storage: faulty, clock, random, trimGraceMs: 0 }))
    const handle = createHandler(hw, { auth: 'none', onError: () => {} })
    const ignoredPart = { offered: 0, ignored: 1, changing: this.#prng.pick([0, 0.3, 1]) }[producers]
    const handler = async (request: Request) => {
      if (this.#prng.chance(ignoredPart)) request.headers.delete(PRODUCER_HEADER)
      return handle(request)
    }
    this.#scheduler.note('server', `starts: ignores ${ignoredPart} of the headers of producers`)
    this.#running = { hw, faulty, clock, handler }
    if (this.lives.length === 0) await this.create()
  }

  async crash(): Promise<void> {
    const running = this.#running
    this.#running = undefined
    running?.clock.stop()
    await running?.faulty.crash()
  }

  setClock(byMs: number): void {
    this.#skewMs += byMs
    this.#running?.clock.step(byMs)
  }

  /** Makes the storage answer at once. */
  heal(): void {
    this.#running?.faulty.heal()
  }

  /** Creates the stream, unless a device has done so. */
  async create(): Promise<void> {
    await this.append('created')
    this.#isMissing = false
  }

  async delete(): Promise<void> {
    this.#isMissing = true
    await this.#within(this.#stream.delete())
  }

  /** Appends as a program that uses no outbox does. */
  async append(body: string): Promise<void> {
    await this.#within(this.#stream.append(body))
  }

  /** Trims a part of the records. */
  async trim(): Promise<void> {
    await this.#within(this.#stream.trim(this.#prng.below(this.life.records.length + 1)))
  }

  #within<Result>(work: Promise<Result>): Promise<Result> {
    return this.#scheduler.whileAdvancing(work)
  }

  #record(logId: string, records: readonly SequencedRecord[], trimPoint: number): void {
    const life = this.lives.find(({ id }) => id === logId) ?? new StoredLog(logId)
    if (!this.lives.includes(life)) this.lives.push(life)
    for (const record of records) life.add(record, null)
    life.trimPoint = trimPoint
  }

  get #stream(): Stream {
    return this.#running!.hw.basin(BASIN, { autoCreate: true }).stream(STREAM)
  }
}
