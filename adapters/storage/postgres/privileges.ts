import type { Database } from './database.ts'
import { UNKNOWN_TO_SERVER, unwrittenFailure } from './failures.ts'
import type { Tables } from './schema.ts'

/**
 * Rejects with `StorageFailure` of kind `denied` unless the server confirms appends, once they are durable. A
 * standby would otherwise be asked again until the call times out, because a server may also be a standby for
 * a moment.
 */
export async function assertWritable(database: Database): Promise<void> {
  const { rows } = await database.run(
    `SELECT pg_is_in_recovery() AS is_standby, current_setting('transaction_read_only') = 'on' AS is_read_only,
       current_setting('synchronous_commit', true) = 'off' AS is_asynchronous`,
    [],
    UNKNOWN_TO_SERVER,
  )
  const { is_standby, is_read_only, is_asynchronous } = rows[0] ?? {}
  const remedy = 'or open the storage with `readOnly: true`'
  if (is_standby === true) {
    throw unwrittenFailure('denied', `the server is a read-only standby: connect to the primary, ${remedy}`)
  }
  if (is_read_only === true) {
    const setting = 'set `default_transaction_read_only` to off for the role and the database'
    throw unwrittenFailure('denied', `transactions of the role are read-only: ${setting}, ${remedy}`)
  }
  if (is_asynchronous === true) {
    const setting = 'set `synchronous_commit` to on for the role or the database'
    throw unwrittenFailure('denied', `the server confirms commits that a crash may lose: ${setting}`)
  }
}

/** Rejects with `StorageFailure` of kind `denied` unless the role may read and change the tables. */
export async function assertPrivileges(database: Database, tables: Tables): Promise<void> {
  const { format, documents, logs, blocks, commits, leases } = tables
  const has = (privilege: string) => `has_table_privilege(name, '${privilege}')`
  const { rows } = await database.run(
    `SELECT name FROM unnest($1::text[]) AS name
     WHERE NOT (${['SELECT', 'INSERT', 'UPDATE', 'DELETE'].map(has).join(' AND ')})`,
    [[format, documents, logs, blocks, commits, leases]],
    UNKNOWN_TO_SERVER,
  )
  if (rows.length === 0) return
  const missing = rows.map(({ name }) => name).join(', ')
  const remedy = 'grant them, or open the storage with `readOnly: true`'
  throw unwrittenFailure('denied', `the role lacks SELECT, INSERT, UPDATE or DELETE on ${missing}: ${remedy}`)
}
