import { type ClockOffset, exceedsOffset, measuredOffset, refineOffset } from '../../../src/core/clocks.ts'
import type { StorageContext } from '../../../src/storage/contract.ts'
import { numberOf } from './client.ts'
import type { Database } from './database.ts'
import { unwrittenFailure } from './failures.ts'

/** The clock of the server, in milliseconds. */
export const SERVER_TIME = 'floor(extract(epoch FROM clock_timestamp()) * 1000)'

/** A larger offset is reported, in milliseconds. */
const WARN_MS = 1_000

/** The clock of the server, by which all processes stamp and expire records. */
export class ServerClock {
  readonly #database: Database
  readonly #context: StorageContext
  /** The clocks agree until a measurement shows otherwise. */
  #offset: ClockOffset = { offsetMs: 0, errorMs: 0 }
  #isReported = false

  constructor(database: Database, context: StorageContext) {
    this.#database = database
    this.#context = context
  }

  /** How far it is ahead of the clock of this process, in milliseconds. */
  get offsetMs(): number {
    return this.#offset.offsetMs
  }

  async now(): Promise<number> {
    const sentAt = this.#context.clock.now()
    const [row] = await this.#database.query(`SELECT ${SERVER_TIME} AS now`)
    this.measured(sentAt, row?.now)
    return numberOf(row?.now)
  }

  /** Takes the value of `SERVER_TIME` from a statement that was sent at `sentAt` and has just returned. */
  measured(sentAt: number, value: unknown): void {
    const { clock, onBackgroundError } = this.#context
    this.#offset = refineOffset(this.#offset, measuredOffset(sentAt, clock.now(), numberOf(value)))
    const isFar = exceedsOffset(this.#offset, WARN_MS)
    if (isFar && !this.#isReported) {
      onBackgroundError?.(unwrittenFailure('blocked', `${this.#difference()}: synchronize them`))
    }
    this.#isReported = isFar
  }

  /** Rejects with `StorageFailure` if the clocks differ by more than this, in milliseconds. */
  async assertWithin(limitMs: number): Promise<void> {
    await this.now()
    if (!exceedsOffset(this.#offset, limitMs)) return
    const limit = `the limit is ${limitMs} ms (\`clockOffsetMsMax\`)`
    throw unwrittenFailure('blocked', `${this.#difference()}; ${limit}: synchronize them`)
  }

  #difference(): string {
    const { offsetMs } = this.#offset
    const direction = offsetMs < 0 ? 'ahead of' : 'behind'
    return `the clock of this process is ${Math.abs(offsetMs)} ms ${direction} that of the database`
  }
}
