import { createHandler } from '../../../adapters/http/index.ts'
import { memory } from '../../../adapters/storage/memory/index.ts'
import { type FaultyStorage, faultyStorage, type VirtualClock } from '../../../adapters/testing/index.ts'
import { type Engine, open, type SequencedRecord, type Stream } from '../../../src/index.ts'
import type { Prng } from '../../../src/runtime/prng.ts'
import { EngineClock } from '../simulation/engine-clock.ts'

export const BASIN = 'devices'
export const STREAM = 'room'

/** A life of the stream, from its creation to its deletion. */
export interface Life {
  /** Every record that the stream ever had, trimmed ones included. */
  readonly records: SequencedRecord[]
  trimmedTo: number
}

/** The server that all devices share. It can crash, and loses nothing that it acknowledged. */
export class SimulatedServer {
  readonly #time: VirtualClock
  readonly #prng: Prng
  readonly #storage = memory()
  readonly lives: Life[] = []
  #running:
    | {
        readonly hw: Engine
        readonly faulty: FaultyStorage
        readonly clock: EngineClock
        readonly handler: (request: Request) => Promise<Response>
      }
    | undefined

  constructor(time: VirtualClock, prng: Prng) {
    this.#time = time
    this.#prng = prng
  }

  get handler(): ((request: Request) => Promise<Response>) | undefined {
    return this.#running?.handler
  }

  get isRunning(): boolean {
    return this.#running !== undefined
  }

  /** The life of the stream that it has now. */
  get life(): Life {
    return this.lives.at(-1)!
  }

  async start(): Promise<void> {
    const clock = new EngineClock(this.#time, 0, false)
    const faulty = faultyStorage(this.#storage)
    const hw = await open({ storage: faulty, clock, random: () => this.#prng.next(), trimGraceMs: 0 })
    this.#running = { hw, faulty, clock, handler: createHandler(hw, { auth: 'none' }) }
    if (this.lives.length === 0) await this.create()
  }

  async crash(): Promise<void> {
    const running = this.#running!
    this.#running = undefined
    running.clock.stop()
    await running.faulty.crash()
  }

  /** Creates the stream. */
  async create(): Promise<void> {
    await this.#running!.hw.basin(BASIN, { autoCreate: true }).stream(STREAM).append('created')
    this.lives.push({ records: [], trimmedTo: 0 })
    await this.observe()
  }

  async delete(): Promise<void> {
    await this.observe()
    await this.#stream.delete()
  }

  /** Appends as a program that uses no outbox does. */
  async append(body: string): Promise<void> {
    await this.#stream.append(body)
  }

  /** Trims a part of the records that were observed. */
  async trim(): Promise<void> {
    await this.observe()
    const { life } = this
    const seqNum = this.#prng.below(life.records.length + 1)
    await this.#stream.trim(seqNum)
    life.trimmedTo = Math.max(life.trimmedTo, seqNum)
    await this.observe()
  }

  /** Notes the records that were appended since the last call. */
  async observe(): Promise<void> {
    const { records } = this.life
    const query = { seqNum: records.length, clamp: true }
    records.push(...(await this.#stream.read(query, { as: 'bytes' }).toArray()))
  }

  get #stream(): Stream {
    return this.#running!.hw.basin(BASIN).stream(STREAM)
  }
}
