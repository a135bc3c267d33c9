import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { reservedPort } from '../../support/port.ts'
import { HAS_POSTGRES } from './cluster.ts'

const PROGRAM = [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin']
  .map((directory) => join(directory, 'pgbouncer'))
  .find((path) => existsSync(path))

/** Whether tests start PgBouncer: where it and PostgreSQL are installed. `.ci/run` installs both. */
export const HAS_PGBOUNCER = HAS_POSTGRES && PROGRAM !== undefined
/** A part of the titles of tests that are skipped without it. */
export const withoutPgBouncer = HAS_PGBOUNCER || !HAS_POSTGRES ? '' : ' (skipped: PgBouncer is not installed)'

/** PgBouncer does not run as root. */
const NOBODY = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {}

/** PgBouncer in transaction mode with its default settings, in front of a cluster. */
export class PgBouncer {
  readonly port: number
  readonly #directory: string
  readonly #server: ChildProcess
  readonly #onExit = () => this.#server.kill('SIGKILL')

  private constructor(port: number, directory: string, server: ChildProcess) {
    this.port = port
    this.#directory = directory
    this.#server = server
    process.on('exit', this.#onExit)
  }

  static async start(clusterPort: number): Promise<PgBouncer> {
    if (PROGRAM === undefined) throw new Error('PgBouncer is not installed')
    const port = await reservedPort()
    const directory = mkdtempSync(join(tmpdir(), 'headwater-pgbouncer-'))
    chmodSync(directory, 0o755)
    const config = join(directory, 'pgbouncer.ini')
    const settings = {
      listen_addr: '127.0.0.1',
      listen_port: port,
      unix_socket_dir: '',
      auth_type: 'any',
      pool_mode: 'transaction',
    }
    const lines = Object.entries(settings).map(([name, value]) => `${name} = ${value}`)
    const database = `postgres = host=127.0.0.1 port=${clusterPort} dbname=postgres user=test`
    writeFileSync(config, ['[databases]', database, '[pgbouncer]', ...lines, ''].join('\n'))
    const server = spawn(PROGRAM, [config], {
      ...NOBODY,
      cwd: directory,
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    await new Promise<void>((resolve, reject) => {
      let log = ''
      server.stderr!.on('data', (chunk: Buffer) => {
        log = (log + chunk).slice(-10_000)
        if (/process up/.test(log)) resolve()
      })
      server.on('exit', (code) => reject(new Error(`pgbouncer exited with ${code}: ${log}`)))
    })
    return new PgBouncer(port, directory, server)
  }

  get connectionString(): string {
    return `postgres://test@127.0.0.1:${this.port}/postgres?pgbouncer=true`
  }

  async dispose(): Promise<void> {
    process.off('exit', this.#onExit)
    if (this.#server.exitCode === null) {
      const exited = once(this.#server, 'exit')
      this.#server.kill('SIGKILL')
      await exited
    }
    rmSync(this.#directory, { recursive: true, force: true })
  }
}
