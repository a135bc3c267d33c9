/**
 * A storage in PostgreSQL, which processes on several machines share.
 *
 * @packageDocumentation
 */

import { invalid } from '../../../src/model/errors.ts'
import { assertOptions, hasMethod, type MembersOf } from '../../../src/model/validation.ts'
import type { Storage } from '../../../src/storage/contract.ts'
import { ChangeChannel } from './change-channel.ts'
import { connectionsOf, isPooler, openPools, type PostgresClient } from './connections.ts'
import { Database, ServerClock } from './database.ts'
import { openTables, tablesOf } from './schema.ts'
import { PostgresSession } from './session.ts'

export type { PostgresClient } from './connections.ts'

/**
 * Options of `postgres`. Requires `connectionString` or `client`.
 */
export interface PostgresOptions {
  /**
   * `postgres://user:password@host:port/database`, with the parameters of `pg`, such as `sslmode`. A pooler
   * in transaction mode needs `?pgbouncer=true`.
   */
  readonly connectionString?: string | undefined
  /** A client in place of `connectionString`, which the caller closes: a `Pool` of `pg`, a `PGlite`, ... */
  readonly client?: PostgresClient | undefined
  /** The schema of the tables, which is created. `headwater` by default. */
  readonly schema?: string | undefined
  /** The most connections that `connectionString` opens, besides one that listens. 10 by default. */
  readonly connectionsMax?: number | undefined
  /**
   * Whether to listen for changes by other processes (`LISTEN`). Otherwise followers poll every second. True
   * by default, unless `connectionString` leads to a pooler in transaction mode and there is no
   * `listenConnectionString`. A `client` can listen if it is a `PGlite`, or a `Pool` of several connections
   * whose connection string does not lead to such a pooler; false for others.
   */
  readonly listen?: boolean | undefined
  /**
   * The connection string for `LISTEN`, which leads to the database itself. `connectionString` by default.
   */
  readonly listenConnectionString?: string | undefined
  /**
   * Opens tables that exist for reading only: on a standby, or with a role that may not write. Appends reject
   * with `storage`. Otherwise such a database is an error. False by default.
   */
  readonly readOnly?: boolean | undefined
  /** How long calls are repeated while the database is unreachable, in milliseconds. 30,000 by default. */
  readonly retryMs?: number | undefined
}

const POSTGRES_OPTIONS: MembersOf<PostgresOptions> = {
  connectionString: 'string',
  client: hasMethod('query', 'a client with a method `query`'),
  schema: 'string',
  connectionsMax: 'number',
  listen: 'boolean',
  listenConnectionString: 'string',
  readOnly: 'boolean',
  retryMs: 'number',
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
  const { connectionString, client, schema = 'headwater', readOnly = false } = options
  if ((connectionString === undefined) === (client === undefined)) {
    throw invalid('postgres requires either `connectionString` or `client`', 'connectionString')
  }
  const { connectionsMax = 10, retryMs = 30_000 } = options
  if (!(Number.isInteger(connectionsMax) && connectionsMax > 0)) {
    throw invalid('`connectionsMax` must be a positive integer', 'connectionsMax')
  }
  if (!(retryMs >= 0)) throw invalid('`retryMs` must be a number of milliseconds, at least 0', 'retryMs')
  const { listenConnectionString = connectionString ?? '' } = options
  const ofClient = client && connectionsOf(client)
  const canListen = ofClient === undefined || ofClient.listen !== undefined
  const listen = canListen && (options.listen ?? !isPooler(listenConnectionString))
  const tables = tablesOf(schema)
  return {
    manifest: {
      name: 'postgres',
      durability: 'power-loss',
      shared: true,
      notifications: listen ? 'hint' : 'none',
    },
    async open(context) {
      const { clock, onLogChanged } = context
      const connections =
        ofClient ?? (await openPools(connectionString!, listenConnectionString, connectionsMax))
      const database = new Database(connections, clock, retryMs, () => context.onHistoryChanged?.())
      const serverClock = clock.isVirtual === true ? undefined : new ServerClock(database, clock)
      try {
        await openTables(database, tables, readOnly)
        await serverClock?.now()
      } catch (error) {
        await database.close()
        throw error
      }
      const changes = listen ? new ChangeChannel(schema, connections, clock, onLogChanged) : undefined
      await changes?.open()
      return new PostgresSession(database, tables, serverClock, changes, readOnly)
    },
  }
}
