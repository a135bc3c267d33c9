import { createHandler } from '../../../adapters/http/index.ts'
import { memory } from '../../../adapters/storage/memory/index.ts'
import { type FaultyStorage, faultyStorage, type VirtualClock } from '../../../adapters/testing/index.ts'
import { type Engine, open, type SequencedRecord, type Storage, type Stream } from '../../../src/index.ts'
import { lossyTextOf } from '../../../src/model/bytes.ts'
import { Prng } from '../../../src/runtime/prng.ts'
import { decodeRecords } from '../../../src/storage/block-codec.ts'
import type { AppendRequest } from '../../../src/storage/contract.ts'
import { APPEND_HEADER } from '../../../src/wire/header-names.ts'
import { wrapped } from '../../support/wrapped-storage.ts'
import { EngineClock } from '../simulation/engine-clock.ts'
import type { Sabotage } from './sabotage.ts'
import { type DeviceSettings, delaysOf } from './settings.ts'
import { whileAdvancing } from './virtual-work.ts'

export const BASIN = 'devices'
export const STREAM = 'room'

/** A life of the stream, from its creation to its deletion. */
export interface Life {
  readonly logId: string
  /** Every record that the stream ever had, trimmed ones included. */
  readonly records: SequencedRecord[]
  trimmedTo: number
}

interface RunningServer {
  readonly hw: Engine
  readonly faulty: FaultyStorage
  readonly clock: EngineClock
  readonly handler: (request: Request) => Promise<Response>
  readonly ignoredPart: number
}

/** The server that all devices share. It can crash, and loses nothing that it acknowledged. */
export class SimulatedServer {
  readonly #time: VirtualClock
  readonly #prng: Prng
  readonly #delayMs: number
  readonly #producers: DeviceSettings['producers']
  readonly #storage: Storage
  readonly lives: Life[] = []
  #isMissing = true
  #skewMs = 0
  #running: RunningServer | undefined

  constructor(time: VirtualClock, prng: Prng, settings: DeviceSettings, sabotage: Sabotage) {
    this.#time = time
    this.#prng = new Prng(prng.below(2 ** 31))
    this.#delayMs = settings.storageDelayMs
    this.#producers = settings.producers
    // The history has what is stored, whatever a sabotaged storage says.
    const recorded = wrapped(memory(), {}, (session) => ({
      append: async (request) => {
        await session.append(request)
        this.#record(request)
      },
    }))
    this.#storage = sabotage.storage?.(recorded, new Prng(prng.below(2 ** 31))) ?? recorded
  }

  get handler(): ((request: Request) => Promise<Response>) | undefined {
    return this.#running?.handler
  }

  /** The part of the requests whose header of producers the server ignores. */
  get ignoredPart(): number {
    return this.#running?.ignoredPart ?? 0
  }

  get isRunning(): boolean {
    return this.#running !== undefined
  }

  /** Whether the stream was deleted, and not created again by a control step. */
  get isMissing(): boolean {
    return this.#isMissing
  }

  /** Whether any records were removed, by a trim or with the stream. */
  get hasRemoved(): boolean {
    return this.isMissing || this.lives.length > 1 || this.life.trimmedTo > 0
  }

  /** Whether a record with this text was ever stored. */
  hasStored(text: string): boolean {
    return this.lives.some(({ records }) => records.some(({ body }) => lossyTextOf(body) === text))
  }

  /** Whether a record with this text was stored where a copy may have none: it was trimmed, or is early. */
  isLeftOut(text: string, startsLate: boolean): boolean {
    return this.lives.some(({ records, trimmedTo }) =>
      records.some(({ body, seqNum }) => (startsLate || seqNum < trimmedTo) && lossyTextOf(body) === text),
    )
  }

  /** The life of the stream that it had last. */
  get life(): Life {
    return this.lives.at(-1)!
  }

  async start(): Promise<void> {
    const clock = new EngineClock(this.#time, this.#skewMs, false)
    const rates = delaysOf(this.#delayMs)
    const seed = this.#prng.below(2 ** 31)
    const faulty = faultyStorage(this.#storage, { rates, seed, notifications: 'reliable' })
    const random = () => this.#prng.next()
    const hw = await this.#within(open({ storage: faulty, clock, random, trimGraceMs: 0 }))
    const ignoredPart = { offered: 0, ignored: 1, changing: this.#prng.pick([0, 0.3, 1]) }[this.#producers]
    const handle = createHandler(hw, { auth: 'none', onError: () => {} })
    const handler = async (request: Request) => {
      if (this.#prng.chance(ignoredPart)) request.headers.delete(APPEND_HEADER)
      return handle(request)
    }
    this.#running = { hw, faulty, clock, handler, ignoredPart }
    if (this.lives.length === 0) await this.create()
  }

  async crash(): Promise<void> {
    const running = this.#running
    this.#running = undefined
    running?.clock.stop()
    await running?.faulty.crash()
  }

  /** Sets the clock of the server. */
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
    return whileAdvancing(this.#time, work)
  }

  #record({ logId, block, head }: AppendRequest): void {
    let life = this.lives.find((each) => each.logId === logId)
    if (life === undefined) {
      life = { logId, records: [], trimmedTo: 0 }
      this.lives.push(life)
    }
    life.records.push(...decodeRecords(block.data))
    life.trimmedTo = head.trimPoint
  }

  get #stream(): Stream {
    return this.#running!.hw.basin(BASIN, { autoCreate: true }).stream(STREAM)
  }
}
