import { HeadwaterError } from '../../model/errors.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { StorageManifest } from '../../storage/contract.ts'
import type { StreamLog } from './stream-log.ts'

/** How often followed logs are read when notifications may get lost, in milliseconds. */
const POLL_MS_WITH_HINTS = 5_000
const POLL_MS_WITHOUT = 1_000

export interface ChangeWatchOptions {
  readonly clock: Clock
  /** Whether other engines may append to the same logs. */
  readonly shared: boolean
  readonly notifications: StorageManifest['notifications']
  readonly onBackgroundError: (error: unknown) => void
}

/** Brings appends of other engines to the followers: on notifications, and by polling where they get lost. */
export class ChangeWatch {
  readonly #options: ChangeWatchOptions
  readonly #logs: () => Iterable<StreamLog>
  readonly #failed = new Set<StreamLog>()
  #cancelPoll: (() => void) | undefined
  #isClosed = false

  constructor(options: ChangeWatchOptions, logs: () => Iterable<StreamLog>) {
    this.#options = options
    this.#logs = logs
  }

  /** Reads what has changed in a log. Repeats it until it succeeds. */
  sync(log: StreamLog): void {
    if (this.#isClosed) return
    log.sync().then(
      () => this.#failed.delete(log),
      (error: unknown) => {
        this.#options.onBackgroundError(error)
        // No later attempt can succeed, and followers would wait for nothing.
        if (HeadwaterError.is(error) && error.code === 'storage_upgraded') return log.fail(error)
        this.#failed.add(log)
        this.poll()
      },
    )
  }

  /** Reads logs at intervals: those with followers where notifications get lost, and those that failed. */
  poll(): void {
    const { clock, shared, notifications } = this.#options
    const mayMissChanges = shared && notifications !== 'reliable'
    const isNeeded = mayMissChanges || this.#failed.size > 0
    if (!isNeeded || this.#cancelPoll !== undefined || this.#isClosed) return
    const delay = notifications === 'hint' ? POLL_MS_WITH_HINTS : POLL_MS_WITHOUT
    this.#cancelPoll = clock.schedule(delay, () => {
      this.#cancelPoll = undefined
      const followed = [...this.#logs()].filter((log) => mayMissChanges && log.followers > 0)
      const due = new Set([...this.#failed, ...followed])
      for (const log of due) this.sync(log)
      if (due.size > 0) this.poll()
    })
  }

  close(): void {
    this.#isClosed = true
    this.#cancelPoll?.()
    this.#failed.clear()
  }
}
