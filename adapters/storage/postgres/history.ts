import type { PostgresRow } from './client.ts'

/**
 * Identifies the history of a server: a promoted replica continues on another timeline, and a restored copy
 * may be another system or database. Fails on servers that are not quite PostgreSQL.
 */
const HISTORY = `SELECT system_identifier AS system,
    (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database()) AS database,
    CASE WHEN pg_is_in_recovery() THEN NULL
      ELSE left(pg_walfile_name(pg_current_wal_lsn()), 8) END AS timeline
  FROM pg_control_system()`

/** Notices that connections lead to another server than before, which may lack confirmed commits. */
export class History {
  readonly #onChanged: () => void
  #known: string | undefined

  constructor(onChanged: () => void) {
    this.#onChanged = onChanged
  }

  /** Asks on a new connection, before anything else. Never rejects. */
  async check(run: (text: string) => Promise<readonly PostgresRow[]>): Promise<void> {
    let found: string
    try {
      const [row] = await run(HISTORY)
      // A standby has no timeline of its own yet, and nothing is appended to it.
      if (row === undefined || row.timeline === null) return
      found = `${row.system} ${row.database} ${row.timeline}`
    } catch {
      // Not permitted, or not known. The heads of logs are compared in any case.
      return
    }
    const isChanged = this.#known !== undefined && this.#known !== found
    this.#known = found
    if (isChanged) this.#onChanged()
  }
}
