import type { Pool } from 'pg'
import type { ConnectionSource } from './client.ts'
import { poolConnections, startListening } from './client.ts'
import { isRefusedStartup, sqlStateOf, unwrittenFailure } from './failures.ts'

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
  const newPool = (more: object) => {
    const pool = new Pool({ ...common, ...more, connectionString, max: connectionsMax })
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

/** A pool with as many settings as the server accepts. It need not be reachable yet. */
async function acceptedPool(newPool: (more: object) => Pool, timeouts: object): Promise<Pool> {
  const pool = newPool({ ...timeouts, options: optionsOf(SETTINGS) })
  try {
    if (await confirmsDurably(poolConnections(pool))) return pool
  } catch (error) {
    if (isRefusedStartup(error)) {
      await pool.end()
      return poolerPool(newPool, timeouts)
    }
    // Unknown, so it is turned on.
  }
  await pool.end()
  return newPool({ ...timeouts, options: optionsOf({ ...SETTINGS, synchronous_commit: 'on' }) })
}

/** A pool for poolers that refuse session settings; the role of the database can have them instead. */
async function poolerPool(newPool: (more: object) => Pool, timeouts: object): Promise<Pool> {
  const pool = newPool(timeouts)
  try {
    const lease = await poolConnections(pool).acquire()
    lease.release(false)
  } catch (error) {
    if (isRefusedStartup(error)) {
      await pool.end()
      return newPool({})
    }
  }
  return pool
}

/** The startup option `options`, in which a backslash escapes a space. */
function optionsOf(settings: Readonly<Record<string, string>>): string {
  return Object.entries(settings)
    .map(([name, value]) => `-c ${name}=${value.replaceAll(' ', '\\ ')}`)
    .join(' ')
}

/** Whether the server confirms commits once they are durable. Rejects if it does not answer. */
async function confirmsDurably({ acquire }: Pick<ConnectionSource, 'acquire'>): Promise<boolean> {
  const text = "SELECT current_setting('synchronous_commit', true) AS value"
  const lease = await acquire()
  let isBroken = true
  try {
    const [row] = await lease.run(text, [], undefined)
    isBroken = false
    return row?.value !== 'off'
  } catch (error) {
    // A server that does not understand the question has no other way to commit.
    if (/^(42|0A)/.test(sqlStateOf(error) ?? '')) return true
    throw error
  } finally {
    lease.release(isBroken)
  }
}

async function importPg(): Promise<Pick<typeof import('pg'), 'Pool' | 'Client'>> {
  try {
    return (await import('pg')).default
  } catch (error) {
    throw unwrittenFailure('io', '`headwater/postgres` needs the package `pg`: npm install pg', error)
  }
}
