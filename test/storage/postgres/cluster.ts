import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { Client } from 'pg'
import { reservedPort } from '../../support/port.ts'

/** The newest programs that Debian or the path has; undefined if PostgreSQL is not installed. */
const PROGRAMS = findPrograms()

/** Whether tests start clusters: in `npm run test:postgres` and in campaigns. `npm test` uses PGlite. */
export const HAS_POSTGRES = PROGRAMS !== undefined && process.env.TEST_POSTGRES !== undefined
/** A part of the titles of tests that are skipped without it. */
export const withoutPostgres = HAS_POSTGRES
  ? ''
  : ` (skipped: ${PROGRAMS === undefined ? 'PostgreSQL is not installed' : '`npm run test:postgres` runs it'})`

/** PostgreSQL does not run as root. */
const NOBODY = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {}

export interface ClusterOptions {
  /** Whether commits survive power loss, as in production. Default: false. */
  readonly fsync?: boolean
  readonly port?: number
}

/** A temporary cluster on a free port of this machine. */
export class Cluster {
  readonly port: number
  readonly #directory: string
  readonly #options: ClusterOptions
  #server: ChildProcess | undefined
  readonly #onExit = () => this.#server?.kill('SIGKILL')

  private constructor(port: number, directory: string, options: ClusterOptions) {
    this.port = port
    this.#directory = directory
    this.#options = options
    process.on('exit', this.#onExit)
  }

  static async start(options: ClusterOptions = {}): Promise<Cluster> {
    if (PROGRAMS === undefined) throw new Error('PostgreSQL is not installed')
    const directory = newDirectory()
    await promisify(execFile)(
      join(PROGRAMS, 'initdb'),
      ['--pgdata', directory, '--username', 'test', '--auth', 'trust', '--encoding', 'UTF8', '--no-sync'],
      { ...NOBODY, cwd: directory },
    )
    const cluster = new Cluster(options.port ?? (await reservedPort()), directory, options)
    await cluster.run()
    return cluster
  }

  get connectionString(): string {
    return `postgres://test@127.0.0.1:${this.port}/postgres`
  }

  /** Starts the server again after {@link kill}. Resolves when it accepts connections. */
  async run(): Promise<void> {
    const settings = {
      port: this.port,
      listen_addresses: '127.0.0.1',
      unix_socket_directories: '',
      max_connections: 200,
      fsync: this.#options.fsync === true ? 'on' : 'off',
    }
    const args = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
    const server = spawn(join(PROGRAMS!, 'postgres'), ['-D', this.#directory, ...args], {
      ...NOBODY,
      cwd: this.#directory,
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    this.#server = server
    await new Promise<void>((resolve, reject) => {
      let log = ''
      server.stderr!.on('data', (chunk: Buffer) => {
        log = (log + chunk).slice(-10_000)
        if (/ready to accept (read-only )?connections/.test(log)) resolve()
      })
      server.on('exit', (code) => reject(new Error(`postgres exited with ${code}: ${log}`)))
    })
  }

  /**
   * Starts a copy of the server, which follows it. If it is synchronous, no commit resolves before the copy
   * has it.
   */
  async standby({ isSynchronous = true } = {}): Promise<Cluster> {
    const directory = newDirectory()
    const from = ['--host', '127.0.0.1', '--port', `${this.port}`, '--username', 'test']
    const how = ['--write-recovery-conf', '--checkpoint', 'fast', '--no-sync']
    await promisify(execFile)(join(PROGRAMS!, 'pg_basebackup'), ['--pgdata', directory, ...from, ...how], {
      ...NOBODY,
      cwd: directory,
    })
    const standby = new Cluster(await reservedPort(), directory, this.#options)
    await standby.run()
    if (!isSynchronous) return standby
    await this.#execute("ALTER SYSTEM SET synchronous_standby_names = '*'", 'SELECT pg_reload_conf()')
    // A new connection shows what the server has read, after which it has told its processes to read it too.
    await this.#until("current_setting('synchronous_standby_names') = '*'")
    // The process that makes checkpoints reads the setting before it makes one, and lets commits wait.
    await this.query('CHECKPOINT')
    await this.#until("EXISTS (SELECT FROM pg_stat_replication WHERE sync_state = 'sync')")
    // The commit waits for the copy to catch up.
    await this.query("SELECT pg_logical_emit_message(true, 'headwater', 'caught up')")
    return standby
  }

  /** Promotes a copy to the server, whatever the state of the other one. */
  async promote(): Promise<void> {
    await this.#execute('SELECT pg_promote()')
  }

  /** Resolves once a copy has everything that the other server has committed by now. */
  async catchUpWith(other: Cluster): Promise<void> {
    const [end] = await other.query('SELECT pg_current_wal_lsn() AS lsn')
    await this.#until(`pg_last_wal_replay_lsn() >= '${end?.lsn}'`)
  }

  /** Shuts the server down without writing anything more, as a crash does. */
  async kill(): Promise<void> {
    const server = this.#server
    this.#server = undefined
    if (server === undefined || server.exitCode !== null) return
    const exited = once(server, 'exit')
    server.kill('SIGQUIT')
    await exited
  }

  async dispose(): Promise<void> {
    await this.kill()
    process.off('exit', this.#onExit)
    rmSync(this.#directory, { recursive: true, force: true })
  }

  /** Runs a statement on a connection of its own. */
  async query(
    statement: string,
    database = 'postgres',
  ): Promise<readonly Readonly<Record<string, unknown>>[]> {
    const connectionString = this.connectionString.replace(/postgres$/, database)
    const client = new Client({ connectionString })
    await client.connect()
    try {
      return (await client.query(statement)).rows
    } finally {
      await client.end()
    }
  }

  /** Resolves once a condition holds on a new connection. */
  async #until(condition: string): Promise<void> {
    for (;;) {
      const [row] = await this.query(`SELECT ${condition} AS holds`)
      if (row?.holds === true) return
    }
  }

  async #execute(...statements: readonly string[]): Promise<void> {
    for (const statement of statements) await this.query(statement)
  }
}

function newDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'headwater-postgres-'))
  if (NOBODY.uid !== undefined) chownSync(directory, NOBODY.uid, NOBODY.gid)
  return directory
}

function findPrograms(): string | undefined {
  const debian = '/usr/lib/postgresql'
  const versions = existsSync(debian) ? readdirSync(debian).sort((a, b) => Number(b) - Number(a)) : []
  const directories = [...versions.map((version) => join(debian, version, 'bin')), ...pathDirectories()]
  return directories.find((directory) => existsSync(join(directory, 'initdb')))
}

function pathDirectories(): string[] {
  return (process.env.PATH ?? '').split(':').filter((directory) => directory !== '')
}
