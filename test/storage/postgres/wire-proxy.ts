import { once } from 'node:events'
import { createServer, connect as openSocket, type Server, type Socket } from 'node:net'

/**
 * What the proxy does to a statement:
 * - `forward`: nothing;
 * - `reject`: replies with an error, and the server does not see the statement;
 * - `cut before`: closes the connection, and the server does not see the statement;
 * - `cut after`: closes the connection once the server has replied;
 * - `late`: closes the connection, and passes the statement on behind some later ones of other connections.
 */
export type StatementAction =
  | { readonly kind: 'forward' | 'cut before' | 'cut after' | 'late' }
  | { readonly kind: 'reject'; readonly code: string; readonly message: string }

export interface ProxyOptions {
  /** The port of the server; called for each connection. */
  readonly port: () => number
  /** Decides on a statement of a connection; connections are numbered from 0. */
  readonly actionOf: (statement: string, connection: number) => StatementAction
  /**
   * Whether to reject settings in the startup message, and statements that were prepared earlier, as poolers
   * in transaction mode do. Default: false.
   */
  readonly isPooler?: boolean
}

export const FORWARD: StatementAction = { kind: 'forward' }
/** The number of statements that a late one arrives behind. */
const LATE_BY = 3
const NOT_PREPARED: StatementAction = { kind: 'reject', code: '26000', message: 'no such prepared statement' }
const SYNC = 'S'.charCodeAt(0)
const QUERY = 'Q'.charCodeAt(0)
const PARSE = 'P'.charCodeAt(0)
const BIND = 'B'.charCodeAt(0)
const TERMINATE = 'X'.charCodeAt(0)

/** A proxy for PostgreSQL's protocol, without TLS. */
export class WireProxy {
  readonly port: number
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  /** The number of connections so far. */
  #connections = 0
  #late: { statements: number; readonly deliver: () => void }[] = []

  private constructor(server: Server) {
    this.#server = server
    this.port = (server.address() as { port: number }).port
  }

  static async start(options: ProxyOptions): Promise<WireProxy> {
    const server = createServer((client) => proxy.#accept(client, options))
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const proxy = new WireProxy(server)
    return proxy
  }

  get connectionString(): string {
    return `postgres://test@127.0.0.1:${this.port}/postgres`
  }

  /** Delivers a statement behind some later ones; never, if there are none. */
  deliverLate(deliver: () => void): void {
    this.#late.push({ statements: LATE_BY, deliver })
  }

  /** A statement has passed. */
  passed(): void {
    for (const late of this.#late) late.statements--
    const due = this.#late.filter(({ statements }) => statements <= 0)
    this.#late = this.#late.filter(({ statements }) => statements > 0)
    for (const { deliver } of due) deliver()
  }

  /** Closes all connections. */
  cutAll(): void {
    for (const socket of this.#sockets) socket.destroy()
  }

  async close(): Promise<void> {
    this.cutAll()
    this.#server.close()
    await once(this.#server, 'close')
  }

  #accept(client: Socket, options: ProxyOptions): void {
    const server = openSocket(options.port(), '127.0.0.1')
    for (const socket of [client, server]) {
      socket.setNoDelay()
      this.#sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => this.#sockets.delete(socket))
    }
    new Connection(client, server, options, this, this.#connections++)
  }
}

/** Passes on whole statements: all messages up to a `Query` or `Sync`. */
class Connection {
  readonly #client: Socket
  readonly #server: Socket
  readonly #options: ProxyOptions
  #received = Buffer.alloc(0)
  #hasStarted = false
  /** The messages of the next statement, and its text. */
  #messages: Buffer[] = []
  #text = ''
  #isCutAfter = false
  #isLate = false
  readonly #proxy: WireProxy
  readonly #number: number
  /** The texts of prepared statements. */
  readonly #prepared = new Map<string, string>()
  /** Whether the next statement was prepared by an earlier one. */
  #isPrepared = false

  constructor(client: Socket, server: Socket, options: ProxyOptions, proxy: WireProxy, number: number) {
    this.#proxy = proxy
    this.#number = number
    this.#client = client
    this.#server = server
    this.#options = options
    client.on('data', (chunk) => this.#receive(chunk as Buffer))
    client.on('close', () => {
      if (!this.#isLate) server.destroy()
    })
    server.on('data', (chunk) => {
      if (this.#isCutAfter) this.#client.destroy()
      else if (!this.#isLate) client.write(chunk as Buffer)
      else server.end()
    })
    server.on('close', () => client.destroy())
  }

  #receive(chunk: Buffer): void {
    this.#received = Buffer.concat([this.#received, chunk])
    for (;;) {
      const header = this.#hasStarted ? 1 : 0
      if (this.#received.length < header + 4) return
      const end = header + this.#received.readInt32BE(header)
      if (this.#received.length < end) return
      const message = this.#received.subarray(0, end)
      this.#received = this.#received.subarray(end)
      if (this.#hasStarted) this.#onMessage(message)
      else this.#onStartup(message)
    }
  }

  #onStartup(message: Buffer): void {
    this.#hasStarted = true
    const setting = /statement_timeout|lock_timeout|options/.exec(message.toString('latin1'))?.[0]
    if (this.#options.isPooler && setting !== undefined) {
      this.#client.end(errorMessage('FATAL', '08P01', `unsupported startup parameter: ${setting}`))
      return
    }
    this.#server.write(message)
  }

  #onMessage(message: Buffer): void {
    const type = message[0]
    if (type === TERMINATE) {
      this.#server.end(message)
      return
    }
    this.#messages.push(message)
    if (type === QUERY) this.#text = textAt(message, 5)
    // The name of the statement comes first, and that of the portal.
    if (type === PARSE) {
      this.#text = textAt(message, message.indexOf(0, 5) + 1)
      this.#prepared.set(textAt(message, 5), this.#text)
    }
    if (type === BIND && this.#text === '') {
      this.#text = this.#prepared.get(textAt(message, message.indexOf(0, 5) + 1)) ?? ''
      this.#isPrepared = true
    }
    if (type !== QUERY && type !== SYNC) return
    const statement = Buffer.concat(this.#messages)
    const text = this.#text
    const isRefused = this.#options.isPooler && this.#isPrepared
    this.#messages = []
    this.#text = ''
    this.#isPrepared = false
    this.#decide(statement, isRefused ? NOT_PREPARED : this.#options.actionOf(text, this.#number))
  }

  #decide(statement: Buffer, action: StatementAction): void {
    this.#proxy.passed()
    switch (action.kind) {
      case 'forward':
        this.#server.write(statement)
        break
      case 'reject':
        this.#client.write(errorMessage('ERROR', action.code, action.message))
        this.#client.write(Buffer.from('Z\0\0\0\u0005I', 'latin1'))
        break
      case 'cut before':
        this.#client.destroy()
        break
      case 'cut after':
        this.#isCutAfter = true
        this.#server.write(statement)
        break
      case 'late':
        this.#isLate = true
        this.#client.destroy()
        this.#proxy.deliverLate(() => this.#server.write(statement))
    }
  }
}

function textAt(message: Buffer, start: number): string {
  return message.toString('utf8', start, message.indexOf(0, start))
}

function errorMessage(severity: string, code: string, message: string): Buffer {
  const fields = `S${severity}\0V${severity}\0C${code}\0M${message}\0\0`
  const head = Buffer.alloc(5)
  head.write('E')
  head.writeInt32BE(4 + Buffer.byteLength(fields), 1)
  return Buffer.concat([head, Buffer.from(fields)])
}
