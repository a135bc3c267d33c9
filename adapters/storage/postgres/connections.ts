import type { Pool, PoolClient, PoolConfig } from 'pg'
import { lenientBase64 } from '../../../src/model/bytes.ts'
import { unwrittenFailure } from './failures.ts'

/**
 * Anything that runs SQL: a `Pool` or `Client` of `pg`, a `PGlite`, or a client of a database's own driver. A
 * query is committed when it resolves, so the client must not be inside a transaction.
 *
 * ```ts
 * declare const pglite: PostgresClient
 * const { rows } = await pglite.query('SELECT $1::int AS one', [1])
 * const storage = postgres({ client: pglite })
 * ```
 */
export interface PostgresClient {
  /**
   * Runs one statement with parameters `$1`, `$2`, ... and resolves to its rows. The value of a column of
   * type `bytea` is a `Uint8Array` or a `Buffer`.
   */
  query(text: string, values?: unknown[]): Promise<{ readonly rows: readonly unknown[] }>
}

/** A row by column. Drivers return 64-bit integers as text, numbers or `bigint`. */
export type PostgresRow = Readonly<Record<string, unknown>>

/** A connection for one statement. */
export interface Lease {
  /** Whether the connection was not used before. Absent if the client does not tell connections apart. */
  readonly isNew?: boolean | undefined
  /** Runs a statement, prepared under its name if it has one and the connection can. */
  run(text: string, values: readonly unknown[], name: string | undefined): Promise<readonly PostgresRow[]>
  /** Returns the connection. A broken one is closed. */
  release(isBroken: boolean): void
}

/** The source of connections on which statements run. */
export interface ConnectionSource {
  /** Waits for a free connection. */
  acquire(): Promise<Lease>
  /** Opens a connection that listens for notifications. Absent if this client cannot listen. */
  listen?(channel: string, listener: Listener): Promise<Listening>
  /** Closes the connections that were opened here. */
  close(): Promise<void>
}

/** Receives what arrives on a channel. */
interface Listener {
  readonly onMessage: (payload: string) => void
  /** Called once, when the connection is lost. */
  readonly onLost: () => void
}

/** A connection that listens. */
export interface Listening {
  readonly client: PostgresClient
  /** Never rejects. */
  close(): Promise<void>
}

/** The part of `PGlite` that is used here. */
interface ListeningClient extends PostgresClient {
  listen(channel: string, callback: (payload: string) => void): Promise<() => Promise<void>>
}

/** The connections of a client that the caller owns. */
export function connectionsOf(client: PostgresClient): ConnectionSource {
  const close = async () => {}
  if (isPool(client)) {
    const { max, connectionString = '' } = client.options
    const hasSession = !isPooler(connectionString)
    // The connection that listens must not be the only one.
    const canListen = hasSession && max !== 1
    return {
      acquire: () => acquire(client, hasSession),
      ...(canListen && { listen: (channel, listener) => listen(client, channel, listener) }),
      close,
    }
  }
  const lease: Lease = {
    run: async (text, values) =>
      (await client.query(text, values as unknown[])).rows as readonly PostgresRow[],
    release() {},
  }
  return {
    acquire: () => Promise.resolve(lease),
    ...(canListen(client) && {
      async listen(channel, { onMessage }) {
        const stop = await client.listen(`"${channel}"`, onMessage)
        return { client, close: () => stop().catch(() => {}) }
      },
    }),
    close,
  }
}

/** How long to wait for a connection, in milliseconds. */
const CONNECT_MS_MAX = 10_000
/** How long a statement may take, and wait for a lock before it is repeated, in milliseconds. */
const TIMEOUTS = { statement_timeout: 30_000, lock_timeout: 5_000 }
/** How long the client waits for an answer before a connection counts as lost, in milliseconds. */
const ANSWER_MS_MAX = 32_000

/**
 * Settings of each connection, as the startup option `options`, in which a backslash escapes a space.
 * Statements are written for this isolation, and stricter ones repeat them more often. Plans are kept, so
 * those made while a table is small must not scan it; and no statement is worth compiling.
 */
const SETTINGS = '-c default_transaction_isolation=read\\ committed -c enable_seqscan=off -c jit=off'

/**
 * Whether a connection string says that it leads to a pooler in transaction mode, as other libraries have it.
 * Such a pooler takes no settings, knows no prepared statement of another connection, and delivers no
 * notifications.
 */
export function isPooler(connectionString: string): boolean {
  return /[?&]pgbouncer=true(&|$)/.test(connectionString)
}

/**
 * Opens a pool of `pg` for statements, and one for the connection that listens. Rejects with `StorageFailure`
 * if `pg` is not installed.
 */
export async function openPools(
  connectionString: string,
  listenConnectionString: string,
  connectionsMax: number,
): Promise<ConnectionSource> {
  const { Pool } = await importPg()
  const openPool = (settings: PoolConfig) => {
    const pool = new Pool({
      application_name: 'headwater',
      keepAlive: true,
      connectionTimeoutMillis: CONNECT_MS_MAX,
      query_timeout: ANSWER_MS_MAX,
      ...settings,
    })
    // A lost connection that nothing uses: the pool replaces it.
    pool.on('error', () => {})
    return pool
  }
  const hasSession = !isPooler(connectionString)
  const statements = openPool({
    connectionString,
    max: connectionsMax,
    ...(hasSession && { ...TIMEOUTS, options: SETTINGS }),
  })
  const listening = openPool({ connectionString: listenConnectionString, max: 1 })
  return {
    acquire: () => acquire(statements, hasSession),
    listen: (channel, listener) => listen(listening, channel, listener),
    close: async () => void (await Promise.all([statements.end(), listening.end()])),
  }
}

/** The connections that were used. Storages may share a pool. */
const used = new WeakSet<PoolClient>()

/** A connection of the pool for each statement, because `Pool.query` closes it after every error. */
async function acquire(pool: Pool, canPrepare: boolean): Promise<Lease> {
  const client = await pool.connect()
  const isNew = !used.has(client)
  used.add(client)
  // A query on a connection that is lost rejects as well; without a listener the process would end.
  if (isNew) client.on('error', () => {})
  return {
    isNew,
    run: async (text, values: unknown[], name) =>
      (await client.query({ text, values, ...(canPrepare && { name }) })).rows,
    release: (isBroken) => client.release(isBroken),
  }
}

async function listen(pool: Pool, channel: string, listener: Listener): Promise<Listening> {
  const client = await pool.connect()
  let isReleased = false
  const release = () => {
    if (!isReleased) client.release(true)
    isReleased = true
  }
  const lose = () => {
    if (!isReleased) listener.onLost()
    release()
  }
  client.on('notification', ({ payload }) => listener.onMessage(payload ?? ''))
  client.on('error', lose)
  client.on('end', lose)
  try {
    await client.query(`LISTEN "${channel}"`)
  } catch (error) {
    release()
    throw error
  }
  return { client, close: async () => release() }
}

async function importPg(): Promise<Pick<typeof import('pg'), 'Pool'>> {
  try {
    return (await import('pg')).default
  } catch (error) {
    throw unwrittenFailure('io', '`headwater/postgres` needs the package `pg`: npm install pg', error)
  }
}

function isPool(client: PostgresClient): client is PostgresClient & Pool {
  const { totalCount, connect } = client as Partial<Pool>
  return typeof totalCount === 'number' && typeof connect === 'function'
}

function canListen(client: PostgresClient): client is ListeningClient {
  return typeof (client as Partial<ListeningClient>).listen === 'function'
}

/** A column of type bigint. */
export function numberOf(value: unknown): number {
  return Number(value)
}

/** A column of type bytea that is encoded with `encode(data, 'base64')`, in memory of its own. */
export function bytesOfBase64(value: unknown): Uint8Array {
  // A copy, because small buffers of Node are parts of one that all share.
  return new Uint8Array(lenientBase64(String(value)))
}

/** A column of type bytea. */
export function bytesOf(value: unknown): Uint8Array {
  const { buffer, byteOffset, length } = value as Uint8Array
  return new Uint8Array(buffer, byteOffset, length)
}

/** Bytes as a member of JSON, which SQL decodes with `decode(text, 'hex')`. */
export function hexOf(bytes: Uint8Array): string {
  let text = ''
  for (const byte of bytes) text += byte.toString(16).padStart(2, '0')
  return text
}
