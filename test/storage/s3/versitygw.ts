import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { type ObjectStorageOptions, objectStorage } from '../../../adapters/storage/s3/index.ts'
import { reservedPort } from '../../support/port.ts'

const PROGRAM = process.env.VERSITYGW ?? 'versitygw'
export const HAS_VERSITYGW = spawnSync(PROGRAM, ['--version']).status === 0
export const withoutVersitygw = HAS_VERSITYGW ? '' : ' (skipped: `versitygw` is not installed)'

export const CREDENTIALS = { accessKeyId: 'gateway', secretAccessKey: 'secret-of-the-gateway' }

/** An S3 gateway on a directory, in a process of its own. */
export class Gateway {
  readonly endpoint: string
  readonly #directory: string
  readonly #port: number
  #process: ChildProcess | undefined
  #buckets = 0

  private constructor(directory: string, port: number) {
    this.#directory = directory
    this.#port = port
    this.endpoint = `http://127.0.0.1:${port}`
  }

  static async start(): Promise<Gateway> {
    const directory = await mkdtemp(join(tmpdir(), 'headwater-gateway-'))
    const gateway = new Gateway(directory, await reservedPort())
    for (const folder of [gateway.#data, gateway.#sidecar]) await mkdir(folder)
    await gateway.run()
    return gateway
  }

  /** Starts the process. Resolves once it replies. */
  async run(): Promise<void> {
    const { accessKeyId, secretAccessKey } = CREDENTIALS
    const keys = ['--access', accessKeyId, '--secret', secretAccessKey]
    const place = ['--port', `127.0.0.1:${this.#port}`]
    this.#process = spawn(PROGRAM, [
      ...keys,
      ...place,
      '--quiet',
      'posix',
      '--sidecar',
      this.#sidecar,
      this.#data,
    ])
    const replies = () =>
      fetch(this.endpoint).then(
        () => true,
        () => false,
      )
    while (!(await replies())) await setTimeout(50)
  }

  async stop(): Promise<void> {
    const ended = new Promise((resolve) => this.#process?.once('exit', resolve))
    this.#process?.kill('SIGKILL')
    await ended
  }

  async remove(): Promise<void> {
    await this.stop()
    await rm(this.#directory, { recursive: true })
  }

  /** Returns the name of a new bucket. */
  async newBucket(): Promise<string> {
    const bucket = `bucket-${this.#buckets++}`
    await mkdir(join(this.#data, bucket))
    return bucket
  }

  storage(bucket: string, options: Partial<ObjectStorageOptions> = {}) {
    return objectStorage({ bucket, endpoint: this.endpoint, credentials: CREDENTIALS, ...options })
  }

  get #data(): string {
    return join(this.#directory, 'data')
  }

  get #sidecar(): string {
    return join(this.#directory, 'sidecar')
  }
}
