import type { ReadLimits } from '../../core/read-plan.ts'
import { READ_METERED_BYTES_MAX } from '../../model/limits.ts'
import { macrotask } from '../../runtime/macrotask.ts'
import type { MaybePromise } from '../../runtime/maybe-promise.ts'

/** How much all reads of an engine take from the storage in one turn of the event loop, in bytes: a batch. */
const TURN_BYTES = READ_METERED_BYTES_MAX
/** Reads of up to this many bytes are small. */
export const SMALL_BYTES = 65_536
/**
 * Reads that have delivered this many bytes are established. It is more than the buffers of a connection
 * hold, so their clients do read.
 */
const ESTABLISHED_BYTES = 8 * TURN_BYTES
/** The least that a batch counts as, in bytes. */
const BATCH_BYTES_MIN = 16_384

/** A read that waits to load a batch. */
interface WaitingRead {
  readonly bytes: number
  readonly isClosed: () => boolean
  readonly resolve: () => void
}

/** The waiting reads of a kind, in order. */
interface ReadQueue {
  /** Its part of the turns, relative to those of the other queues that are not empty. */
  readonly weight: number
  readonly reads: WaitingRead[]
  /** The bytes that it was given, divided by `weight`: the queue with the least is next. */
  served: number
}

/**
 * Spreads the stored batches of all reads over turns of the event loop: encoding a batch and writing it takes
 * milliseconds, for which appends, timers and other connections wait. Small and established reads get most
 * of the turns, so that any number of new large ones hardly slows them down.
 */
export class ReadScheduler {
  #left = TURN_BYTES
  /** The queues of small, established and new reads. */
  readonly #queues = [queueOf(8), queueOf(7), queueOf(1)] as const

  /**
   * Admits a batch of about `bytes` bytes to a read that has delivered `deliveredBytes`. Returns a promise if
   * the read must wait for a later turn of the event loop. A read that `isClosed` by then uses up nothing.
   */
  admit(bytes: number, deliveredBytes: number, isClosed: () => boolean): MaybePromise<void> {
    const isSmall = bytes <= SMALL_BYTES
    const waiting = this.#next()
    if ((isSmall || waiting === undefined) && this.tryTake(bytes)) return undefined
    const [small, established, others] = this.#queues
    const large = deliveredBytes >= ESTABLISHED_BYTES ? established : others
    const queue = isSmall ? small : large
    return new Promise((resolve) => {
      // A queue that was empty has not saved up turns.
      if (queue.reads.length === 0) queue.served = Math.max(queue.served, waiting?.served ?? 0)
      queue.reads.push({ bytes, isClosed, resolve })
      if (waiting === undefined) void this.#admitWaiting()
    })
  }

  /** Returns false, and takes nothing, if this turn of the event loop has not that many bytes left. */
  tryTake(bytes: number): boolean {
    if (bytes > this.#left) return false
    this.#left -= bytes
    return true
  }

  async #admitWaiting(): Promise<void> {
    while (this.#next() !== undefined) {
      await macrotask()
      this.#left = TURN_BYTES
      for (let queue = this.#next(); queue !== undefined; queue = this.#next()) {
        const { bytes, isClosed, resolve } = queue.reads[0]!
        if (!isClosed()) {
          if (bytes > this.#left) break
          this.#left -= bytes
          queue.served += bytes / queue.weight
        }
        queue.reads.shift()
        resolve()
      }
    }
  }

  /** The queue whose first read is next. */
  #next(): ReadQueue | undefined {
    let next: ReadQueue | undefined
    for (const queue of this.#queues) {
      if (queue.reads.length > 0 && (next === undefined || queue.served < next.served)) next = queue
    }
    return next
  }
}

function queueOf(weight: number): ReadQueue {
  return { weight, reads: [], served: 0 }
}

/**
 * Estimates the bytes of the next batch of a read that may deliver up to `count` records of about
 * `recordBytes` bytes.
 */
export function expectedBytes(count: number, limits: ReadLimits, recordBytes: number): number {
  const expected = Math.min(count, limits.count) * recordBytes
  return Math.max(Math.min(expected, limits.bytes, READ_METERED_BYTES_MAX), BATCH_BYTES_MIN)
}
