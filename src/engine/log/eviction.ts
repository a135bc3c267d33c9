import type { StreamRef } from '../../model/names.ts'
import type { Head } from '../../storage/contract.ts'
import type { StreamDocument } from '../../storage/documents.ts'
import { IdleRows, NO_ROW } from './idle-rows.ts'
import type { StreamLog } from './stream-log.ts'

/** The part of the cached streams that may be objects until rows are kept. */
const OBJECTS_PART = 1 / 10
/** The part of these objects that streams may take that are created one after another. */
const CREATED_PART = 1 / 8
/** How many idle streams are objects once others have rows: a scavenge copies all that became objects. */
const OBJECTS_BESIDE_ROWS = 512
/** How many streams are considered when one is added, so that adding one never takes long. */
const SCAN_MAX = 16

/**
 * Evicts idle logs from the cache when there are too many, by the clock algorithm: using a log sets a mark,
 * and does not change their order. Keeps a row of each once more were used than may be objects. A log that
 * was only created gets no row: a bulk import would replace the streams that are in use.
 */
export class Eviction {
  readonly #logs: ReadonlyMap<string, StreamLog>
  readonly #remove: (log: StreamLog) => void
  readonly #objectsMax: number
  readonly #rows: IdleRows
  #keepsRows = false
  /** Continues where the last scan ended. A new iteration would pass over all entries deleted before. */
  #hand: Iterator<StreamLog> | undefined

  /** `logs` are those that have objects. `remove` removes one of them. */
  constructor(cachedStreams: number, logs: ReadonlyMap<string, StreamLog>, remove: (log: StreamLog) => void) {
    this.#logs = logs
    this.#remove = remove
    this.#objectsMax = Math.ceil(cachedStreams * OBJECTS_PART)
    this.#rows = new IdleRows(cachedStreams - this.#objectsMax)
  }

  /** The number of streams that were evicted and have rows. */
  get rows(): number {
    return this.#rows.size
  }

  /** Returns a log that was evicted, which `add` makes of its state; undefined if it has no row. */
  restore(ref: StreamRef, add: (document: StreamDocument, head: Head) => StreamLog): StreamLog | undefined {
    const idle = this.#rows.take(ref)
    if (idle === undefined) return undefined
    const log = add(idle.document, idle.head)
    log.recordBytes = idle.recordBytes
    log.row = idle.row
    return log
  }

  /**
   * Evicts a few logs if there are too many.
   *
   * @param isNew Whether the stream was just created.
   */
  makeRoom(added: StreamLog, isNew: boolean): void {
    if (!isNew) added.row ??= NO_ROW
    const objectsMax = this.#objectsMax * (isNew ? CREATED_PART : 1)
    this.#keepsRows ||= this.#logs.size > this.#objectsMax
    const idleMax = this.#keepsRows ? Math.min(OBJECTS_BESIDE_ROWS, objectsMax) : objectsMax
    for (let left = SCAN_MAX; left > 0 && this.#logs.size > idleMax; left--) {
      this.#hand ??= this.#logs.values()
      const { value: log } = this.#hand.next()
      if (log === undefined) this.#hand = undefined
      else if (log.wasUsed || log === added || !log.isIdle) {
        if (log.wasUsed) log.row ??= NO_ROW
        log.wasUsed = false
      } else if ((this.#keepsRows && this.#rows.put(log)) || this.#logs.size > objectsMax) this.#remove(log)
    }
  }

  /** Frees the row of a log that leaves the cache, unless the row holds its state. */
  release(log: StreamLog): void {
    this.#rows.release(log)
  }

  /** Forgets the state of a stream. */
  forget(ref: StreamRef): void {
    this.#rows.delete(ref)
  }

  /** Forgets the states of all streams. */
  forgetAll(): void {
    this.#rows.clear()
  }
}
