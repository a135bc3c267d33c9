import type { Clock } from '../clock.ts'
import type { Storage, StorageManifest, StorageSession } from '../contract.ts'

export interface ConformanceOptions {
  /** Of the storage that `make` makes: it decides which tests run. */
  readonly manifest: StorageManifest
  /** An empty storage, its own for each test. */
  readonly make: () => Promise<ConformanceFixture>
  /** What the storage takes its time from. Default: the real time. */
  readonly clock?: Clock
  /** Whether what was written is there when everything is closed and opened again. Default: unless durability is `none`. */
  readonly keepsDataWhenClosed?: boolean
  /** How long a notification may take, in milliseconds of real time. Default: 5,000. */
  readonly notificationMsMax?: number
  /** Seeds of the random tests. Default: 1 to 5. */
  readonly seeds?: readonly number[]
  /** How many operations each random test makes. Default: 300. */
  readonly randomOperations?: number
}

export interface ConformanceFixture {
  readonly storage: Storage
  /**
   * Another storage over the same data, as a new process would make it. Called with every session closed.
   * Default: `storage`.
   */
  readonly reopen?: () => Promise<Storage>
  /** Removes the data. Called last, with every session closed. */
  readonly dispose: () => Promise<void>
}

/** What a test needs of a storage beyond the contract. */
export type Need = 'shared' | 'exclusive' | 'reliable-notifications' | 'reopen'

export interface ConformanceCase {
  readonly title: string
  readonly needs?: readonly Need[]
  run(harness: Harness): Promise<void>
}

/** What a test works with: opens sessions, and closes those that the test leaves open. */
export class Harness {
  readonly options: ConformanceOptions
  /** Timers that the storage has armed and neither cancelled nor seen fire. */
  armedTimers = 0
  readonly #fixture: ConformanceFixture
  readonly #sessions: StorageSession[] = []
  readonly #clock: Clock
  #storage: Storage

  constructor(options: ConformanceOptions, fixture: ConformanceFixture) {
    this.options = options
    this.#fixture = fixture
    this.#storage = fixture.storage
    this.#clock = this.#counting(options.clock ?? realClock)
  }

  get storage(): Storage {
    return this.#storage
  }

  async open(onLogChanged: (logId: string) => void = () => {}): Promise<StorageSession> {
    const session = await this.#storage.open({ clock: this.#clock, onLogChanged })
    this.#sessions.push(session)
    return session
  }

  /** Closes everything and opens it as a new process would. */
  async reopen(): Promise<StorageSession> {
    await this.closeAll()
    this.#storage = (await this.#fixture.reopen?.()) ?? this.#storage
    return this.open()
  }

  async closeAll(): Promise<void> {
    for (const session of this.#sessions.splice(0)) await session.close()
  }

  #counting(clock: Clock): Clock {
    return {
      now: () => clock.now(),
      schedule: (delayMs, callback, options) => {
        this.armedTimers++
        let armed = true
        const disarm = (): void => {
          if (armed) this.armedTimers--
          armed = false
        }
        const fire = (): void => {
          disarm()
          callback()
        }
        const cancel = clock.schedule(delayMs, fire, options)
        return () => {
          disarm()
          cancel()
        }
      },
    }
  }
}

const realClock: Clock = {
  now: () => Date.now(),
  schedule(delayMs, callback) {
    const timer = setTimeout(callback, delayMs)
    return () => clearTimeout(timer)
  },
}
