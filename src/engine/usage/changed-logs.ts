import { MINUTES } from '../../core/usage/tiers.ts'
import type { StorageSession } from '../../storage/contract.ts'
import { measureEach } from './measure-each.ts'
import { storeMeasurements } from './measurements.ts'
import { pagesOf } from './pages.ts'
import { logScope } from './usage-documents.ts'

const LOGS_OF_PAGE = 100

/**
 * Logs of which what they hold is to be measured and stored. Both are done page by page, so that however many there are takes no memory; a log
 * of which either fails stays, and is measured again later.
 */
export class ChangedLogs {
  readonly #session: StorageSession
  readonly #logIds = new Set<string>()

  constructor(session: StorageSession) {
    this.#session = session
  }

  get size(): number {
    return this.#logIds.size
  }

  add(logId: string): void {
    this.#logIds.add(logId)
  }

  /** Stores what each holds under a minute (seconds). Resolves to the first failure, after which the others were measured all the same. */
  async measure(minute: number): Promise<{ readonly error: unknown } | undefined> {
    let failure: { readonly error: unknown } | undefined
    for (const logIds of pagesOf([...this.#logIds], LOGS_OF_PAGE)) {
      const failures = await this.#measurePage(logIds, minute)
      if (failures.length > 0) failure ??= { error: failures[0] }
      // Of a storage that is away nothing more is asked now.
      if (failures.length === logIds.length) break
    }
    return failure
  }

  /** Resolves to why logs stay, for each of them. */
  async #measurePage(logIds: readonly string[], minute: number): Promise<readonly unknown[]> {
    // What changes from here on is measured again.
    for (const logId of logIds) this.#logIds.delete(logId)
    const { sizes, failures } = await measureEach(this.#session, logIds)
    for (const logId of failures.keys()) this.#logIds.add(logId)
    try {
      const there = await Promise.all([...sizes].map(([logId, size]) => size > 0 || this.#mayExist(logId)))
      const measured = [...sizes].filter((_, index) => there[index])
      const measurements = measured.map(([logId, bytes]) => ({ scope: logScope(logId), time: minute, bytes }))
      await storeMeasurements(this.#session, measurements, MINUTES)
      return [...failures.values()]
    } catch (error) {
      for (const logId of logIds) this.#logIds.add(logId)
      return logIds.map(() => error)
    }
  }

  /** A log that does not exist measures 0 as well. */
  async #mayExist(logId: string): Promise<boolean> {
    const head = await this.#session.head(logId).catch(() => null)
    return head !== undefined
  }
}
