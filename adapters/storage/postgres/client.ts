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
  /** Runs one statement with parameters `$1`, `$2`, ... and resolves to its rows. */
  query(text: string, values?: unknown[]): Promise<{ readonly rows: readonly unknown[] }>
}

/** A row by column. Drivers return 64-bit integers as text, numbers or `bigint`. */
export type PostgresRow = Readonly<Record<string, unknown>>

/** A connection for one statement. */
interface Lease {
  /** Whether the connection was not used before. Absent if the client does not tell connections apart. */
  readonly isNew?: boolean | undefined
  /** Runs a statement, prepared under its name if it has one and the client can. */
  run(text: string, values: readonly unknown[], name: string | undefined): Promise<readonly PostgresRow[]>
  /** Returns the connection. A broken one is closed. */
  release(isBroken: boolean): void
}

/** The source of connections on which statements run. */
export interface ConnectionSource {
  /** Waits for a free connection. */
  acquire(): Promise<Lease>
  /** Opens the connection that listens for notifications; undefined if this client cannot listen. */
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

/** A client of `pg` that was connected. */
interface ConnectedClient extends PostgresClient {
  query(text: string, values?: unknown[]): Promise<{ readonly rows: readonly unknown[] }>
  query(config: {
    readonly name: string
    readonly text: string
    readonly values: unknown[]
  }): Promise<{ readonly rows: readonly unknown[] }>
  on(event: 'notification', listener: (message: { readonly payload?: string | undefined }) => void): unknown
  on(event: 'error' | 'end', listener: () => void): unknown
}

/** The part of a `Pool` of `pg` that is used here. */
interface ClientPool extends PostgresClient {
  readonly totalCount: number
  readonly options?: { readonly max?: number | null | undefined } | undefined
  connect(): Promise<ConnectedClient & { release(error?: boolean): void }>
}

/** The part of `PGlite` that is used here. */
interface ListeningClient extends PostgresClient {
  listen(channel: string, callback: (payload: string) => void): Promise<() => Promise<void>>
}

/** The connections of a client that the caller owns. */
export function connectionsOf(client: PostgresClient): ConnectionSource {
  if (isPool(client)) {
    const { acquire, listen } = poolConnections(client)
    // The connection that listens must not be the only one.
    const canListenToo = client.options?.max !== 1
    return { acquire, ...(canListenToo && { listen }), close: async () => {} }
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
    close: async () => {},
  }
}

/** The connections that have a listener for errors. Storages may share a pool. */
const guarded = new WeakSet<ConnectedClient>()

/** A connection of the pool for each statement, because `Pool.query` closes it after every error. */
export function poolConnections(pool: ClientPool): Required<Omit<ConnectionSource, 'close'>> {
  return {
    async acquire() {
      const client = await pool.connect()
      const isNew = !guarded.has(client)
      // Its query rejects as well; without a listener the error would end the process.
      if (isNew) client.on('error', () => {})
      guarded.add(client)
      return {
        isNew,
        async run(text, values: unknown[], name) {
          const result =
            name === undefined ? client.query(text, values) : client.query({ name, text, values })
          return (await result).rows as readonly PostgresRow[]
        },
        release: (isBroken) => client.release(isBroken),
      }
    },
    async listen(channel, listener) {
      const client = await pool.connect()
      let isReleased = false
      const release = () => {
        if (!isReleased) client.release(true)
        isReleased = true
      }
      try {
        await startListening(client, channel, {
          ...listener,
          onLost: () => {
            release()
            listener.onLost()
          },
        })
      } catch (error) {
        release()
        throw error
      }
      return { client, close: async () => release() }
    },
  }
}

/** Listens on a connected client of `pg`. */
export async function startListening(
  client: ConnectedClient,
  channel: string,
  { onMessage, onLost }: Listener,
): Promise<void> {
  client.on('notification', ({ payload }) => onMessage(payload ?? ''))
  let isLost = false
  const lose = () => {
    if (!isLost) onLost()
    isLost = true
  }
  client.on('error', lose)
  client.on('end', lose)
  await client.query(`LISTEN "${channel}"`)
}

function isPool(client: PostgresClient): client is ClientPool {
  const { totalCount, connect } = client as Partial<ClientPool>
  return typeof totalCount === 'number' && typeof connect === 'function'
}

function canListen(client: PostgresClient): client is ListeningClient {
  return typeof (client as Partial<ListeningClient>).listen === 'function'
}

/** A column of type bigint: drivers return text, a number or a `bigint`. */
export function numberOf(value: unknown): number {
  return Number(value)
}

/** A column of type bigint that may be null. */
export function numberOrNull(value: unknown): number | null {
  return value === null || value === undefined ? null : Number(value)
}

/** A column of type bytea that is encoded with `encode(data, 'base64')`, in memory of its own. */
export function bytesOfBase64(value: unknown): Uint8Array {
  const text = String(value)
  if (typeof Buffer !== 'function') return Uint8Array.from(atob(text), (char) => char.charCodeAt(0))
  const bytes = Buffer.from(text, 'base64')
  // Small buffers are parts of one that all share.
  return bytes.length === bytes.buffer.byteLength ? new Uint8Array(bytes.buffer) : new Uint8Array(bytes)
}

/** A column of type bytea. Some drivers return the text form of PostgreSQL. */
export function bytesOf(value: unknown): Uint8Array {
  if (value instanceof Uint8Array) return new Uint8Array(value.buffer, value.byteOffset, value.byteLength)
  const text = String(value)
  const bytes = new Uint8Array((text.length - 2) / 2)
  for (let i = 0; i < bytes.length; i++) bytes[i] = Number.parseInt(text.slice(2 * i + 2, 2 * i + 4), 16)
  return bytes
}

/** Bytes as a member of JSON, which SQL decodes with `decode(text, 'hex')`. */
export function hexOf(bytes: Uint8Array): string {
  let text = ''
  for (const byte of bytes) text += byte.toString(16).padStart(2, '0')
  return text
}
