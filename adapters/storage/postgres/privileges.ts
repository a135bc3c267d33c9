import type { Database } from './database.ts'
import { unwrittenFailure } from './failures.ts'
import type { Tables } from './schema.ts'

type Privilege = 'SELECT' | 'INSERT' | 'UPDATE' | 'DELETE'
type TableName = Exclude<keyof Tables, 'name' | 'schema'>

const ALL: readonly Privilege[] = ['SELECT', 'INSERT', 'UPDATE', 'DELETE']

/** The privileges that the statements of a session need. */
const NEEDED: Readonly<Record<TableName, readonly Privilege[]>> = {
  format: ['SELECT'],
  documents: ALL,
  logs: ALL,
  blocks: ['SELECT', 'INSERT', 'DELETE'],
  commits: ['SELECT', 'INSERT', 'DELETE'],
  leases: ALL,
}

/**
 * The error codes of servers that have only a part of PostgreSQL's functions: syntax error, undefined
 * function, object or parameter, not supported, invalid value, internal error. They say nothing about
 * privileges.
 */
const UNKNOWN_TO_SERVER = ['42601', '42883', '42703', '42704', '0A000', '22023', '42804', 'XX000']
/** Undefined table, undefined schema. */
const MISSING = ['42P01', '3F000']

/**
 * Rejects with `StorageFailure` of kind `denied` if the server is a standby, or if transactions of the role
 * are read-only by default. Appends would otherwise be repeated until they time out, because a server may
 * also be a standby for a moment.
 */
export async function assertWritable(database: Database): Promise<void> {
  const { rows } = await database.run(
    `SELECT current_setting('transaction_read_only') AS is_read_only, pg_is_in_recovery()::text AS is_standby,
       current_user::text AS role`,
    [],
    UNKNOWN_TO_SERVER,
  )
  const { is_read_only: isReadOnly, is_standby: isStandby, role } = rows[0] ?? {}
  const remedy = 'or open the storage with `readOnly: true`'
  if (isStandby === 'true') {
    throw unwrittenFailure('denied', `the server is a read-only standby: connect to the primary, ${remedy}`)
  }
  if (isReadOnly !== 'on') return
  throw unwrittenFailure(
    'denied',
    `transactions of the role \`${role}\` are read-only: set \`default_transaction_read_only\` to off for the ` +
      `role and the database, ${remedy}`,
  )
}

/**
 * Rejects with `StorageFailure` of kind `denied`, which names what is missing, unless the role has the
 * privileges that a session needs.
 */
export async function assertPrivileges(
  database: Database,
  tables: Tables,
  isReadOnly: boolean,
): Promise<void> {
  const needed = Object.entries(NEEDED).flatMap(([name, privileges]) =>
    (isReadOnly ? ALL.slice(0, 1) : privileges).map((privilege) => [name as TableName, privilege] as const),
  )
  const values = needed.map(([name, privilege]) => `('${name}', ${literal(tables[name])}, '${privilege}')`)
  const { rows, rejectedWith } = await database.run(
    `SELECT current_user::text AS role, name, privilege FROM (VALUES ${values.join(', ')})
       AS needed (name, path, privilege) WHERE NOT has_table_privilege(path, privilege)`,
    [],
    [...UNKNOWN_TO_SERVER, ...MISSING],
  )
  if (rejectedWith !== undefined && MISSING.includes(rejectedWith)) {
    throw unwrittenFailure(
      'denied',
      `schema ${tables.schema} has no tables: open it once without \`readOnly\``,
    )
  }
  if (rows.length === 0) return
  const missing = rows.map(({ name, privilege }) => `${privilege} on ${name}`).join(', ')
  throw unwrittenFailure(
    'denied',
    `the role \`${rows[0]!.role}\` lacks privileges in schema ${tables.schema}: ${missing}` +
      (isReadOnly ? '' : '; grant them, or open the storage with `readOnly: true`'),
  )
}

function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`
}
