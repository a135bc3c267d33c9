import { invalid } from '../../../src/model/errors.ts'
import { assertOptions, hasMethod, type MembersOf } from '../../../src/model/validation.ts'
import type { Storage, StorageContext } from '../../../src/storage/contract.ts'
import { type ConnectionSource, connectionsOf, type PostgresClient } from './client.ts'
import { Database, History } from './database.ts'
import { openPool } from './pool.ts'
import { assertPrivileges, assertWritable } from './privileges.ts'
import { assertVersion, createTables, type Tables, tablesOf } from './schema.ts'
import { ServerClock } from './server-clock.ts'
import { PostgresSession } from './session.ts'

/**
 * Options of `postgres`. Requires `connectionString` or `client`.
 */
export interface PostgresOptions {
  /** `postgres://user:password@host:port/database`, with the parameters of `pg`, such as `sslmode`. */
  readonly connectionString?: string | undefined
  /** A client in place of `connectionString`, which the caller closes: a `Pool` of `pg`, a `PGlite`, ... */
  readonly client?: PostgresClient | undefined
  /** The schema of the tables, which is created. `headwater` by default. */
  readonly schema?: string | undefined
  /** The most connections that `connectionString` opens, besides one that listens. 10 by default. */
  readonly connectionsMax?: number | undefined
  /**
   * Whether to listen for changes by other processes (`LISTEN`). Otherwise followers poll every second. True
   * by default.
   */
  readonly listen?: boolean | undefined
  /**
   * The connection string for `LISTEN`: that of the database itself, if `connectionString` leads to a pooler
   * in transaction mode. `connectionString` by default.
   */
  readonly listenConnectionString?: string | undefined
  /**
   * Opens tables that exist for reading only: on a standby, or with a role that may not write. Appends reject
   * with `storage`. Otherwise such a database is an error. False by default.
   */
  readonly readOnly?: boolean | undefined
  /** How long a statement may take, in milliseconds. 30,000 by default. */
  readonly statementTimeoutMs?: number | undefined
  /** How long a statement waits for a lock before it is repeated, in milliseconds. 5,000 by default. */
  readonly lockTimeoutMs?: number | undefined
  /** How long calls are repeated while the database is unreachable, in milliseconds. 30,000 by default. */
  readonly retryMs?: number | undefined
  /**
   * How far the clock of this process may be from that of the database, in milliseconds. Beyond it, `open`
   * rejects. 300,000 by default.
   */
  readonly clockOffsetMsMax?: number | undefined
}

const POSTGRES_OPTIONS: MembersOf<PostgresOptions> = {
  connectionString: 'string',
  client: hasMethod('query', 'a client with a method `query`'),
  schema: 'string',
  connectionsMax: 'number',
  listen: 'boolean',
  listenConnectionString: 'string',
  readOnly: 'boolean',
  statementTimeoutMs: 'number',
  lockTimeoutMs: 'number',
  retryMs: 'number',
  clockOffsetMsMax: 'number',
}

/**
 * Creates a storage in a PostgreSQL database, which any number of engines in any number of processes share.
 * Does nothing until it is opened, and then creates its tables.
 *
 * ```ts
 * const hw = await open({ storage: postgres({ connectionString: 'postgres://localhost/app' }) })
 * ```
 *
 * `connectionString` requires the package `pg`. Throws `invalid` for invalid options.
 */
export function postgres(options: PostgresOptions): Storage {
  assertOptions(options, POSTGRES_OPTIONS)
  const { connectionString, client, schema = 'headwater', listen = true, readOnly = false } = options
  if ((connectionString === undefined) === (client === undefined)) {
    throw invalid('postgres requires either `connectionString` or `client`', 'connectionString')
  }
  const { connectionsMax = 10, statementTimeoutMs = 30_000, lockTimeoutMs = 5_000 } = options
  assertPositive({ connectionsMax, statementTimeoutMs, lockTimeoutMs })
  const { retryMs = 30_000, clockOffsetMsMax = 300_000 } = options
  assertMilliseconds({ retryMs, clockOffsetMsMax })
  const tables = tablesOf(schema)
  const connect = async (): Promise<ConnectionSource> => {
    if (connectionString === undefined) return connectionsOf(client!)
    const { listenConnectionString = connectionString } = options
    const timeouts = { statementTimeoutMs, lockTimeoutMs }
    return openPool({ connectionString, listenConnectionString, connectionsMax, ...timeouts })
  }
  return {
    manifest: {
      name: 'postgres',
      durability: 'power-loss',
      shared: true,
      notifications: listen ? 'hint' : 'none',
    },
    open: async (context) =>
      openSession(await connect(), tables, context, { listen, retryMs, readOnly, clockOffsetMsMax }),
  }
}

async function openSession(
  connections: ConnectionSource,
  tables: Tables,
  context: StorageContext,
  options: {
    readonly listen: boolean
    readonly retryMs: number
    readonly readOnly: boolean
    readonly clockOffsetMsMax: number
  },
): Promise<PostgresSession> {
  const { readOnly } = options
  const history = new History(() => context.onHistoryChanged?.())
  const database = new Database(connections, context.clock, options.retryMs, history)
  const serverClock = context.clock.isVirtual === true ? undefined : new ServerClock(database, context)
  try {
    if (readOnly) {
      await assertVersion(database, tables)
    } else {
      await assertWritable(database)
      await createTables(database, tables)
      await assertPrivileges(database, tables)
    }
    await serverClock?.assertWithin(options.clockOffsetMsMax)
  } catch (error) {
    await database.close()
    throw error
  }
  const channel = options.listen ? channelOf(tables) : undefined
  const session = new PostgresSession(database, tables, context, serverClock, channel)
  if (readOnly) session.electForBackgroundWork = () => () => {}
  await session.listen()
  return session
}

/** Quotes and other odd characters are escaped. Schemas with the same beginning may share a channel. */
function channelOf({ name }: Tables): string {
  return `headwater_${encodeURIComponent(name)}`.slice(0, 63)
}

function assertMilliseconds(numbers: Readonly<Record<string, number>>): void {
  for (const [name, value] of Object.entries(numbers)) {
    if (!(value >= 0)) throw invalid(`\`${name}\` must be a number of milliseconds, at least 0`, name)
  }
}

function assertPositive(numbers: Readonly<Record<string, number>>): void {
  for (const [name, value] of Object.entries(numbers)) {
    if (!(Number.isInteger(value) && value > 0)) throw invalid(`\`${name}\` must be a positive integer`, name)
  }
}
