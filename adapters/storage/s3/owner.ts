import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import type { Clock } from '../../../src/runtime/clock.ts'
import { StorageFailure } from '../../../src/storage/errors.ts'
import type { S3Bucket } from './s3-bucket.ts'

const KEY = 'owner'
const RENEWAL_MS = 10_000
/** An owner that has not renewed its object for so long is gone. */
const ALIVE_MS = 3 * RENEWAL_MS

interface Owner {
  readonly id: string
  readonly host: string
  readonly pid: number
}

/**
 * The process that has the bucket open, for error messages only: writers exclude each other by the numbers of
 * their pieces, so an owner that is taken for dead does no harm.
 */
export class BucketOwner {
  readonly #bucket: S3Bucket
  readonly #clock: Clock
  readonly #own: Owner
  readonly #assertWriter: () => Promise<void>
  readonly #onLost: (error: unknown) => void
  #cancelRenewal = () => {}
  #isClosed = false

  private constructor(
    bucket: S3Bucket,
    clock: Clock,
    own: Owner,
    assertWriter: () => Promise<void>,
    onLost: (error: unknown) => void,
  ) {
    this.#bucket = bucket
    this.#clock = clock
    this.#own = own
    this.#assertWriter = assertWriter
    this.#onLost = onLost
  }

  /**
   * Rejects with `blocked` if another process has the bucket open, unless `takeOver` is set.
   *
   * @param assertWriter Rejects with `blocked` if another process has taken over.
   * @param onLost Called once it has.
   */
  static async become(
    bucket: S3Bucket,
    clock: Clock,
    takeOver: boolean,
    assertWriter: () => Promise<void>,
    onLost: (error: unknown) => void,
  ): Promise<BucketOwner> {
    const age = await bucket.ageMs(KEY)
    if (age !== undefined && age < ALIVE_MS && !takeOver) {
      const { host, pid } = await storedOwner(bucket)
      const message = `process ${pid} on ${host} has the bucket open; with \`takeOver\` it loses it`
      throw new StorageFailure('blocked', message, { nothingWritten: true })
    }
    const own = { id: randomUUID(), host: hostname(), pid: process.pid }
    const owner = new BucketOwner(bucket, clock, own, assertWriter, onLost)
    await owner.#store()
    owner.#renewLater()
    return owner
  }

  async leave(): Promise<void> {
    this.#isClosed = true
    this.#cancelRenewal()
    const stored = await storedOwner(this.#bucket).catch(() => undefined)
    // What is left of it only delays the next opening.
    if (stored?.id === this.#own.id) await this.#bucket.remove(KEY).catch(() => {})
  }

  #store(): Promise<void> {
    return this.#bucket.put(KEY, Buffer.from(JSON.stringify(this.#own)))
  }

  #renewLater(): void {
    this.#cancelRenewal = this.#clock.schedule(RENEWAL_MS, () => {
      void this.#renew().then(() => this.#isClosed || this.#renewLater())
    })
  }

  async #renew(): Promise<void> {
    try {
      await this.#assertWriter()
      if (!this.#isClosed) await this.#store()
    } catch (error) {
      // Without a connection, the writes report the failure.
      if (this.#isClosed || !StorageFailure.is(error) || error.kind !== 'blocked') return
      this.#isClosed = true
      this.#onLost(error)
    }
  }
}

async function storedOwner(bucket: S3Bucket): Promise<Owner> {
  const text = await bucket.get(KEY, 0, 4096)
  return text === undefined ? { id: '', host: 'an unknown host', pid: 0 } : JSON.parse(text.toString())
}
