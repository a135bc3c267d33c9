import { type Clock, systemClock } from '../../src/runtime/clock.ts'
import type { Storage, StorageManifest, StorageSession } from '../../src/storage/contract.ts'
import { LogWriter } from './log-writer.ts'

/** Options of {@link conformanceSuite}. */
export interface ConformanceOptions {
  /** Manifest of the storage that `make` returns: selects the tests that run. */
  readonly manifest: StorageManifest
  /** Creates an empty storage for one test. */
  readonly make: () => Promise<ConformanceFixture>
  /** The clock of the storage. The system clock by default. */
  readonly clock?: Clock | undefined
  /** Whether data survives when every session is closed. True by default, unless durability is `none`. */
  readonly keepsDataWhenClosed?: boolean | undefined
  /** How long a notification may take, in milliseconds of real time. 5,000 by default. */
  readonly notificationMsMax?: number | undefined
  /** Seeds of the random tests. 1 to 5 by default. */
  readonly seeds?: readonly number[] | undefined
  /** Number of operations of each random test. 300 by default. */
  readonly randomOperations?: number | undefined
}

/** The storage of one test. */
export interface ConformanceFixture {
  /** The storage to test. */
  readonly storage: Storage
  /**
   * Returns another storage over the same data, as a new process would create it. Called with every session
   * closed. Returns `storage` by default.
   */
  readonly reopen?: (() => Promise<Storage>) | undefined
  /**
   * Returns another storage over the data as a crash of the process would leave it. Called while sessions are
   * open, and maybe with calls in flight. By default, `storage` is used: if it is shared, it is opened once
   * more, else it is closed first.
   */
  readonly crash?: (() => Promise<Storage>) | undefined
  /** Removes the data. Called last, with every session closed. */
  readonly dispose: () => Promise<void>
}

/** The tests of a topic by title. Each has a storage of its own. */
export type Cases = Readonly<Record<string, (harness: Harness) => Promise<unknown>>>

/** Tests that begin with an empty log named `a`. At the end, it must be as they have written it. */
export type LogCases = Readonly<Record<string, (log: LogWriter, harness: Harness) => Promise<unknown>>>

export function onLog(cases: LogCases): Cases {
  const entries = Object.entries(cases).map(([title, run]) => {
    const runAndCheck = async (harness: Harness) => {
      const log = await harness.log()
      await run(log, harness)
      await log.check()
    }
    return [title, runAndCheck] as const
  })
  return Object.fromEntries(entries)
}

/** Opens the sessions of a test, and closes those that it leaves open. */
export class Harness {
  readonly options: ConformanceOptions
  /** Timers that are armed: neither cancelled nor fired. */
  readonly armedTimers = new Set<object>()
  readonly #fixture: ConformanceFixture
  readonly #sessions: StorageSession[] = []
  /** The sessions of processes that have crashed. */
  readonly #abandoned: StorageSession[] = []
  readonly #clock: Clock
  #storage: Storage

  constructor(options: ConformanceOptions, fixture: ConformanceFixture) {
    this.options = options
    this.#fixture = fixture
    this.#storage = fixture.storage
    this.#clock = this.#counting(options.clock ?? systemClock)
  }

  get storage(): Storage {
    return this.#storage
  }

  async open(onLogChanged: (logId: string) => void = () => {}): Promise<StorageSession> {
    const session = await this.#storage.open({ clock: this.#clock, onLogChanged })
    this.#sessions.push(session)
    return session
  }

  /** Opens a session, and creates a log with it. */
  async log(logId = 'a'): Promise<LogWriter> {
    return LogWriter.create(await this.open(), logId)
  }

  /** Closes all sessions and opens one as a new process would. */
  async reopen(): Promise<StorageSession> {
    await this.closeAll()
    this.#storage = (await this.#fixture.reopen?.()) ?? this.#storage
    return this.open()
  }

  /** Abandons all sessions without closing them, and opens one as a new process does after a crash. */
  async crash(): Promise<StorageSession> {
    if (this.#fixture.crash === undefined && !this.#storage.manifest.shared) return this.reopen()
    this.#abandoned.push(...this.#sessions.splice(0))
    this.#storage = (await this.#fixture.crash?.()) ?? this.#storage
    return this.open()
  }

  /** Opens another session if the storage is shared; otherwise, returns the one that is open. */
  async other(): Promise<StorageSession> {
    return this.#storage.manifest.shared ? this.open() : this.#sessions[0]!
  }

  async closeAll(): Promise<void> {
    for (const session of this.#sessions.splice(0)) await session.close()
    for (const session of this.#abandoned.splice(0)) await session.close()
  }

  #counting(clock: Clock): Clock {
    return {
      isVirtual: clock.isVirtual,
      now: () => clock.now(),
      schedule: (delayMs, callback, options) => {
        const timer = {}
        this.armedTimers.add(timer)
        const fire = (): void => {
          this.armedTimers.delete(timer)
          callback()
        }
        const cancel = clock.schedule(delayMs, fire, options)
        return () => {
          this.armedTimers.delete(timer)
          cancel()
        }
      },
    }
  }
}
