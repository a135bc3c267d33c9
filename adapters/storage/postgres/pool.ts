import type { Pool } from 'pg'
import type { ConnectionSource } from './client.ts'
import { poolConnections, startListening } from './client.ts'
import { isRefusedStartup, unwrittenFailure } from './failures.ts'

export interface PoolOptions {
  readonly connectionString: string
  readonly listenConnectionString: string
  readonly connectionsMax: number
  readonly statementTimeoutMs: number
  readonly lockTimeoutMs: number
}

/** How long to wait for a connection, in milliseconds. */
const CONNECT_MS_MAX = 10_000
/** How much longer than the server the client waits before a connection counts as lost, in milliseconds. */
const REPLY_GRACE_MS = 2_000

/**
 * Settings of each connection. Statements are written for this isolation, and stricter ones repeat them more
 * often. Plans are kept, so those made while a table is small must not scan it; and no statement is worth
 * compiling.
 */
const SETTINGS = { default_transaction_isolation: 'read committed', enable_seqscan: 'off', jit: 'off' }

/** Opens a pool of `pg`. Rejects with `StorageFailure` if `pg` is not installed. */
export async function openPool(options: PoolOptions): Promise<ConnectionSource> {
  const { connectionString, listenConnectionString, connectionsMax, statementTimeoutMs, lockTimeoutMs } =
    options
  const { Pool, Client } = await importPg()
  const common = {
    application_name: 'headwater',
    keepAlive: true,
    connectionTimeoutMillis: CONNECT_MS_MAX,
    query_timeout: statementTimeoutMs + REPLY_GRACE_MS,
  }
  const timeouts = { statement_timeout: statementTimeoutMs, lock_timeout: lockTimeoutMs }
  const newPool = (settings: object) => {
    const pool = new Pool({ ...common, ...settings, connectionString, max: connectionsMax })
    // A lost connection that nothing uses: the pool replaces it.
    pool.on('error', () => {})
    return pool
  }
  const pool = await acceptedPool(newPool, timeouts)
  return {
    ...poolConnections(pool),
    async listen(channel, listener) {
      const client = new Client({ ...common, connectionString: listenConnectionString })
      const close = () => client.end().catch(() => {})
      client.on('error', () => {})
      try {
        await client.connect()
        await startListening(client, channel, listener)
      } catch (error) {
        void close()
        throw error
      }
      return { client, close }
    },
    close: () => pool.end(),
  }
}

/** A pool with the settings, or without where a pooler refuses them. It need not be reachable yet. */
async function acceptedPool(newPool: (settings: object) => Pool, timeouts: object): Promise<Pool> {
  const pool = newPool({ ...timeouts, options: optionsOf(SETTINGS) })
  try {
    const lease = await poolConnections(pool).acquire()
    lease.release(false)
  } catch (error) {
    if (!isRefusedStartup(error)) return pool
    await pool.end()
    return newPool({})
  }
  return pool
}

/** The startup option `options`, in which a backslash escapes a space. */
function optionsOf(settings: Readonly<Record<string, string>>): string {
  return Object.entries(settings)
    .map(([name, value]) => `-c ${name}=${value.replaceAll(' ', '\\ ')}`)
    .join(' ')
}

async function importPg(): Promise<Pick<typeof import('pg'), 'Pool' | 'Client'>> {
  try {
    return (await import('pg')).default
  } catch (error) {
    throw unwrittenFailure('io', '`headwater/postgres` needs the package `pg`: npm install pg', error)
  }
}
