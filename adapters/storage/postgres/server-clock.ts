import { type ClockOffset, measuredOffset, refineOffset } from '../../../src/core/clocks.ts'
import type { Clock } from '../../../src/runtime/clock.ts'
import { numberOf } from './connections.ts'
import type { Database } from './database.ts'

/** The clock of the server, in milliseconds. */
export const SERVER_TIME = 'floor(extract(epoch FROM clock_timestamp()) * 1000)'

/** The clock of the server, by which all processes stamp and expire records. */
export class ServerClock {
  readonly #database: Database
  readonly #clock: Clock
  /** The clocks agree until a measurement shows otherwise. */
  #offset: ClockOffset = { offsetMs: 0, errorMs: 0 }

  constructor(database: Database, clock: Clock) {
    this.#database = database
    this.#clock = clock
  }

  /** How far it is ahead of the clock of this process, in milliseconds. */
  get offsetMs(): number {
    return this.#offset.offsetMs
  }

  async now(): Promise<number> {
    const sentAt = this.#clock.now()
    const [row] = await this.#database.query(`SELECT ${SERVER_TIME} AS now`)
    this.measured(sentAt, row?.now)
    return numberOf(row?.now)
  }

  /** Takes the value of `SERVER_TIME` from a statement that was sent at `sentAt` and has just returned. */
  measured(sentAt: number, value: unknown): void {
    this.#offset = refineOffset(this.#offset, measuredOffset(sentAt, this.#clock.now(), numberOf(value)))
  }
}
