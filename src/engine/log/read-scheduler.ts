import type { ReadLimits } from '../../core/read-limits.ts'
import { MIB, READ_METERED_BYTES_MAX } from '../../model/limits.ts'
import { macrotask } from '../../runtime/macrotask.ts'
import type { MaybePromise } from '../../runtime/maybe-promise.ts'

/** How much all reads of an engine take from the storage in one turn of the event loop, in bytes. */
const TURN_BYTES = 8 * MIB
/** The part of a turn for other reads while preferred ones wait. */
const OTHERS_BYTES = TURN_BYTES / 8
/** Reads of up to this many bytes are preferred. */
const SMALL_BYTES = 65_536
/**
 * Reads that have delivered this many bytes are preferred. It is more than the buffers of a connection hold,
 * so their clients do read.
 */
const ESTABLISHED_BYTES = 8 * MIB
/** The least that a batch counts as, in bytes. */
const BATCH_BYTES_MIN = 16_384
/** The expected size of a record, in bytes. */
const RECORD_BYTES = 4_096

/** A read that waits to load a batch. */
interface WaitingRead {
  readonly bytes: number
  readonly isClosed: () => boolean
  readonly resolve: () => void
}

/**
 * Spreads the stored batches of all reads over turns of the event loop. Storages and sockets that need no
 * turn of their own would otherwise delay timers, aborts and other connections, and the garbage of thousands
 * of reads would pile up. Small and established reads get most of each turn, so that any number of new large
 * ones hardly slows them down.
 */
export class ReadScheduler {
  #left = TURN_BYTES
  readonly #preferred: WaitingRead[] = []
  readonly #others: WaitingRead[] = []
  #isAdmitting = false

  /**
   * Admits a batch of about `bytes` bytes to a read that has delivered `deliveredBytes`. Returns a promise if
   * the read must wait for a later turn of the event loop. A read that `isClosed` by then uses up nothing.
   */
  admit(bytes: number, deliveredBytes: number, isClosed: () => boolean): MaybePromise<void> {
    if (this.#left > 0) {
      this.#left -= bytes
      return undefined
    }
    const isPreferred = bytes <= SMALL_BYTES || deliveredBytes >= ESTABLISHED_BYTES
    return new Promise((resolve) => {
      const queue = isPreferred ? this.#preferred : this.#others
      queue.push({ bytes, isClosed, resolve })
      if (!this.#isAdmitting) void this.#admitWaiting()
    })
  }

  async #admitWaiting(): Promise<void> {
    this.#isAdmitting = true
    while (this.#preferred.length + this.#others.length > 0) {
      await macrotask()
      const unused = admitFrom(this.#others, OTHERS_BYTES)
      const left = admitFrom(this.#preferred, TURN_BYTES - OTHERS_BYTES + unused)
      this.#left = admitFrom(this.#others, left)
    }
    this.#isAdmitting = false
  }
}

/** Admits reads until the bytes are used up. Returns what is left, which may be negative. */
function admitFrom(queue: WaitingRead[], bytes: number): number {
  let left = bytes
  while (left > 0) {
    const read = queue.shift()
    if (read === undefined) break
    if (!read.isClosed()) left -= read.bytes
    read.resolve()
  }
  return left
}

/** Estimates the bytes of the next batch of a read that may deliver up to `count` records. */
export function expectedBytes(count: number, limits: ReadLimits): number {
  const bytes = Math.min(Math.min(count, limits.count) * RECORD_BYTES, limits.bytes, READ_METERED_BYTES_MAX)
  return Math.max(bytes, BATCH_BYTES_MIN)
}
