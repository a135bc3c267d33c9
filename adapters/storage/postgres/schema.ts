import { utf8Length } from '../../../src/model/bytes.ts'
import { invalid } from '../../../src/model/errors.ts'
import { numberOf } from './connections.ts'
import type { Database } from './database.ts'
import { NO_TABLES, READ_ONLY, unwrittenFailure, WRITABLE } from './failures.ts'

/** The tables of one schema, quoted. */
export interface Tables {
  /** The name of the schema as given. */
  readonly name: string
  readonly schema: string
  readonly format: string
  readonly documents: string
  readonly logs: string
  readonly blocks: string
  readonly commits: string
}

/** Longer names are truncated by PostgreSQL. */
const NAME_BYTES_MAX = 63

/** Throws `invalid` unless the name can be that of a schema. */
export function tablesOf(schema: string): Tables {
  if (schema === '' || schema.includes('\0') || utf8Length(schema) > NAME_BYTES_MAX) {
    throw invalid(`\`schema\` must have 1 to ${NAME_BYTES_MAX} bytes and no U+0000`, 'schema')
  }
  const quoted = `"${schema.replaceAll('"', '""')}"`
  const table = (name: string) => `${quoted}.${name}`
  return {
    name: schema,
    schema: quoted,
    format: table('format'),
    documents: table('documents'),
    logs: table('logs'),
    blocks: table('blocks'),
    commits: table('commits'),
  }
}

/** The version of the tables. Persisted: keep stable. Previews had 1. */
const VERSION = 2

/** Each has no effect when it is repeated. */
const CREATION = ({ format, documents, logs, blocks, commits }: Tables): readonly string[] => [
  // `value` is JSON. Keys are UTF-8: text excludes U+0000, and bytes have the same order under every
  // collation.
  `CREATE TABLE IF NOT EXISTS ${documents} (
    collection text NOT NULL, key bytea NOT NULL, value text NOT NULL, version bigint NOT NULL,
    PRIMARY KEY (collection, key)
  )`,
  // The first columns identify the head. `state`, `extensions` and `write_state` are the rest of it as JSON.
  // The log has something to free from `due_at` on, because of a trim or, at 0, the deletion, and from
  // `expires_at` on, because its first block expires: both may be too early. `trimmed_to` is the point of the
  // last trim. Every append replaces the row: with free space on the page, that takes no index entry.
  `CREATE TABLE IF NOT EXISTS ${logs} (
    id bytea PRIMARY KEY, epoch bigint NOT NULL, seq_num bigint NOT NULL, append_id text NOT NULL,
    state text NOT NULL, extensions text, write_state text, metered_bytes bigint NOT NULL,
    is_deleted boolean NOT NULL, trimmed_to bigint, due_at bigint, expires_at bigint
  ) WITH (fillfactor = 50)`,
  `CREATE INDEX IF NOT EXISTS logs_due ON ${logs} (due_at) WHERE due_at IS NOT NULL`,
  `CREATE INDEX IF NOT EXISTS logs_expiry ON ${logs} (expires_at) WHERE expires_at IS NOT NULL`,
  // `append_id` is the last append in the block.
  `CREATE TABLE IF NOT EXISTS ${blocks} (
    log bytea NOT NULL, end_seq_num bigint NOT NULL, first_seq_num bigint NOT NULL,
    first_timestamp bigint NOT NULL, last_timestamp bigint NOT NULL, metered_bytes bigint NOT NULL,
    expires_at bigint, append_id text NOT NULL, data bytea NOT NULL,
    PRIMARY KEY (log, end_seq_num)
  )`,
  // Commits of the last hour: after a lost connection, one is looked up by its id.
  `CREATE TABLE IF NOT EXISTS ${commits} (id text PRIMARY KEY, committed_at bigint NOT NULL)`,
  `CREATE INDEX IF NOT EXISTS commits_by_time ON ${commits} (committed_at)`,
  // Last, because it says that the others are there.
  `CREATE TABLE IF NOT EXISTS ${format} (id bigint PRIMARY KEY, version bigint NOT NULL)`,
  `INSERT INTO ${format} VALUES (1, ${VERSION}) ON CONFLICT (id) DO NOTHING`,
]

/** The error codes of creating an object that another process creates at the same time. */
const ALREADY_CREATED = ['23505', '42P06', '42P07', '42710', 'XX000']

/**
 * Creates the tables, also while other processes do the same. If they are to be read only, they must exist.
 * Rejects with `StorageFailure` if the tables are of another version, or cannot be used.
 */
export async function openTables(database: Database, tables: Tables, isReadOnly: boolean): Promise<void> {
  let version = await versionOf(database, tables, isReadOnly)
  if (version === undefined && !isReadOnly) {
    // Creating it takes a privilege, even if it exists.
    const found = 'SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = $1'
    const schemas = await database.query(found, [tables.name])
    if (schemas.length === 0) await create(database, `CREATE SCHEMA IF NOT EXISTS ${tables.schema}`)
    for (const statement of CREATION(tables)) await create(database, statement)
    version = await versionOf(database, tables, isReadOnly)
  }
  if (version === VERSION) return
  const { schema } = tables
  if (version === undefined) {
    throw unwrittenFailure('denied', `schema ${schema} has no tables: open it once without \`readOnly\``)
  }
  const found = `the tables in schema ${schema} have version ${version}`
  const message = `${found}; this version of headwater reads ${VERSION}`
  const remedy = 'use another schema, or drop this one, which an earlier preview has left'
  throw unwrittenFailure('blocked', version < VERSION ? `${message}: ${remedy}` : message)
}

/**
 * The version of the tables, undefined if there are none. `FOR UPDATE` fails on a standby, and for a role
 * that may not write, so that `open` does instead of the first append.
 */
async function versionOf(
  database: Database,
  { format }: Tables,
  isReadOnly: boolean,
): Promise<number | undefined> {
  const { rows, rejectedWith } = await database.run(
    `SELECT version, current_setting('synchronous_commit', true) AS synchronous_commit
     FROM ${format} WHERE id = 1 ${isReadOnly ? '' : 'FOR UPDATE'}`,
    [],
    [...NO_TABLES, READ_ONLY],
  )
  if (rejectedWith === READ_ONLY) {
    throw unwrittenFailure('denied', `the server is a standby, or the role is read-only: ${WRITABLE}`)
  }
  const [row] = rows
  if (row?.synchronous_commit === 'off' && !isReadOnly) {
    const remedy = 'set `synchronous_commit` to on for the role or the database'
    throw unwrittenFailure('denied', `the server confirms commits that a crash may lose: ${remedy}`)
  }
  return row && numberOf(row.version)
}

/** `IF NOT EXISTS` fails if another process creates the object meanwhile; the second attempt finds it. */
async function create(database: Database, statement: string): Promise<void> {
  const { rejectedWith } = await database.run(statement, [], ALREADY_CREATED)
  if (rejectedWith !== undefined) await database.query(statement)
}
