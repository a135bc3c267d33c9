import type { Connections } from './client.ts'
import { poolConnections, startListening } from './client.ts'
import { failure, isRefusedStartup } from './failures.ts'

export interface PoolOptions {
  readonly connectionString: string
  readonly listenConnectionString: string
  readonly maxConnections: number
  readonly statementTimeoutMs: number
  readonly lockTimeoutMs: number
}

/** How long to wait for a connection, in milliseconds. */
const CONNECT_MS_MAX = 10_000
/** How much longer than the server the client waits before a connection counts as lost, in milliseconds. */
const REPLY_GRACE_MS = 2_000

/** Opens a pool of `pg`. Rejects with `StorageFailure` if `pg` is not installed. */
export async function openPool(options: PoolOptions): Promise<Connections> {
  const { connectionString, listenConnectionString, maxConnections, statementTimeoutMs, lockTimeoutMs } =
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
    const pool = new Pool({ ...common, ...more, connectionString, max: maxConnections })
    // A lost connection that nothing uses: the pool replaces it.
    pool.on('error', () => {})
    return pool
  }
  let pool = newPool(timeouts)
  try {
    ;(await pool.connect()).release()
  } catch (error) {
    // Poolers refuse session settings; the role of the database can have them instead.
    if (isRefusedStartup(error)) {
      await pool.end()
      pool = newPool({})
    }
  }
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

async function importPg(): Promise<Pick<typeof import('pg'), 'Pool' | 'Client'>> {
  try {
    return (await import('pg')).default
  } catch (error) {
    throw failure('io', '`headwater/postgres` needs the package `pg`: npm install pg', error)
  }
}
