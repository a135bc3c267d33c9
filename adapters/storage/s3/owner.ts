import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import type { Clock } from '../../../src/runtime/clock.ts'
import { StorageFailure } from '../../../src/storage/errors.ts'
import { takenOver } from './bucket-medium.ts'
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
 * Who has the bucket open. It only tells people: writers exclude each other by the numbers of their pieces, so
 * an owner that is taken for dead does no harm.
 */
export class BucketOwner {
  readonly #bucket: S3Bucket
  readonly #clock: Clock
  readonly #own: Owner
  readonly #onLost: (failure: StorageFailure) => void
  #cancelRenewal = () => {}
  #isClosed = false

  private constructor(bucket: S3Bucket, clock: Clock, own: Owner, onLost: (failure: StorageFailure) => void) {
    this.#bucket = bucket
    this.#clock = clock
    this.#own = own
    this.#onLost = onLost
  }

  /**
   * Rejects with `blocked` if another process has the bucket open, unless `takeOver` is set.
   *
   * @param onLost Called once another process has taken over.
   */
  static async become(
    bucket: S3Bucket,
    clock: Clock,
    takeOver: boolean,
    onLost: (failure: StorageFailure) => void,
  ): Promise<BucketOwner> {
    const age = await bucket.ageMs(KEY)
    if (age !== undefined && age < ALIVE_MS && !takeOver) {
      const { host, pid } = await storedOwner(bucket)
      const message = `process ${pid} on ${host} has the bucket open; with \`takeOver\` it loses it`
      throw new StorageFailure('blocked', message, { nothingWritten: true })
    }
    const own = { id: randomUUID(), host: hostname(), pid: process.pid }
    const owner = new BucketOwner(bucket, clock, own, onLost)
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
      // Without a connection, the writes report the failure.
      void this.#renew()
        .catch(() => {})
        .then(() => this.#isClosed || this.#renewLater())
    })
  }

  async #renew(): Promise<void> {
    const { id } = await storedOwner(this.#bucket)
    if (this.#isClosed) return
    if (id === this.#own.id) return this.#store()
    this.#isClosed = true
    this.#onLost(takenOver(true))
  }
}

async function storedOwner(bucket: S3Bucket): Promise<Owner> {
  const text = await bucket.get(KEY, 0, 4096)
  return text === undefined ? { id: '', host: 'an unknown host', pid: 0 } : JSON.parse(text.toString())
}
