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
 * and does not change their order. Keeps a row of each once more were used than may be objects, as long as no
 * other engine is at work. A log that was only created gets no row: a bulk import would replace the streams
 * that are in use.
 */
export class Eviction {
  readonly #logs: ReadonlyMap<string, StreamLog>
  readonly #add: (document: StreamDocument, head: Head) => StreamLog
  readonly #remove: (log: StreamLog) => void
  readonly #objectsMax: number
  readonly #rows: IdleRows
  /** Whether no other engine is known to be at work. */
  #isAlone = true
  #isFull = false
  /** Continues where the last scan ended. A new iteration would pass over all entries deleted before. */
  #hand: Iterator<StreamLog> | undefined

  /** `logs` are those in the cache, by id, which `add` and `remove` change. */
  constructor(
    cachedStreams: number,
    logs: ReadonlyMap<string, StreamLog>,
    add: (document: StreamDocument, head: Head) => StreamLog,
    remove: (log: StreamLog) => void,
  ) {
    this.#logs = logs
    this.#add = add
    this.#remove = remove
    this.#objectsMax = Math.ceil(cachedStreams * OBJECTS_PART)
    this.#rows = new IdleRows(cachedStreams - this.#objectsMax)
  }

  /** The number of streams that were evicted and have rows. */
  get rows(): number {
    return this.#rows.size
  }

  /** Adds a log that was evicted to the cache again, and returns it; undefined if it has no row. */
  restore(ref: StreamRef): StreamLog | undefined {
    const idle = this.#rows.take(ref)
    if (idle === undefined) return undefined
    const log = this.#add(idle.document, idle.head)
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
    this.#isFull ||= this.#logs.size > this.#objectsMax
    const keepsRows = this.#isFull && this.#isAlone
    const idleMax = keepsRows ? Math.min(OBJECTS_BESIDE_ROWS, objectsMax) : objectsMax
    for (let left = SCAN_MAX; left > 0 && this.#logs.size > idleMax; left--) {
      this.#hand ??= this.#logs.values()
      const { value: log } = this.#hand.next()
      if (log === undefined) this.#hand = undefined
      else if (log.wasUsed || log === added || !log.isIdle) {
        if (log.wasUsed) log.row ??= NO_ROW
        log.wasUsed = false
      } else if ((keepsRows && this.#rows.put(log)) || this.#logs.size > objectsMax) {
        this.#remove(log)
      }
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

  /**
   * Forgets all rows and keeps no more of them: another engine is at work, or this one ends. Notifications of
   * the other reach only streams that are objects.
   */
  dropRows(): void {
    this.#isAlone = false
    this.#rows.clear()
  }
}
