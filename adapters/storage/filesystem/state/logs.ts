import { StorageFailure } from '../../../../src/storage/errors.ts'
import type { Log } from './log.ts'
import type { Segment } from './segment.ts'
import { readLog, StoredLogs } from './stored-logs.ts'

/** The logs: those of the checkpoint, which are decoded when they are first used, and those since. */
export class DirectoryLogs {
  readonly #segments: ReadonlyMap<number, Segment>
  readonly #stored = new StoredLogs()
  /** A byte for each position: 1 if the log is in the maps, or was deleted. */
  #isLoaded = new Uint8Array()
  readonly #byId = new Map<string, Log>()
  readonly #byNumber = new Map<number, Log>()

  constructor(segments: ReadonlyMap<number, Segment>) {
    this.#segments = segments
  }

  /** Adds logs of a checkpoint, whose bytes are kept. Throws `RangeError` if they are not in order. */
  addStored(bytes: Buffer): void {
    this.#stored.add(bytes)
    const isLoaded = new Uint8Array(this.#stored.size)
    isLoaded.set(this.#isLoaded)
    this.#isLoaded = isLoaded
  }

  /** The number of logs that {@link addStored} added. */
  get storedSize(): number {
    return this.#stored.size
  }

  add(log: Log): void {
    this.#byId.set(log.id, log)
    this.#byNumber.set(log.number, log)
  }

  delete(log: Log): void {
    this.#byId.delete(log.id)
    this.#byNumber.delete(log.number)
  }

  withId(id: string): Log | undefined {
    return this.#byId.get(id) ?? this.#loadIfStored(this.#stored.positionOfId(id))
  }

  withNumber(number: number): Log | undefined {
    return this.#byNumber.get(number) ?? this.#loadIfStored(this.#stored.positionOf(number))
  }

  /** The logs that were used or created since the checkpoint: only they have blocks in journals. */
  loaded(): Iterable<Log> {
    return this.#byNumber.values()
  }

  /** Iterates over all logs. */
  *values(): Generator<Log, void, undefined> {
    for (let position = 0; position < this.#stored.size; position++) {
      if (this.#isLoaded[position] === 0) this.#load(position)
    }
    yield* this.#byNumber.values()
  }

  /** Loads the stored logs of which something may have to be freed at this time. */
  loadDue(time: number): void {
    for (const position of this.#stored.due(time)) if (this.#isLoaded[position] === 0) this.#load(position)
  }

  /** Captures the stored logs that are as they were, ascending by number. */
  unloaded(): Iterable<Buffer> {
    return unloadedOf(this.#stored, this.#isLoaded.slice())
  }

  /**
   * Iterates over the logs that exist now, also while they change. Loads none: it yields copies of those that
   * are not loaded.
   */
  scan(): Generator<Log, void, undefined> {
    return this.#scan(this.#isLoaded.slice(), [...this.#byNumber.values()])
  }

  *#scan(wasLoaded: Uint8Array, loaded: readonly Log[]): Generator<Log, void, undefined> {
    for (let position = 0; position < wasLoaded.length; position++) {
      if (wasLoaded[position] === 1) continue
      const isLoaded = this.#isLoaded[position] === 1
      const log = isLoaded ? this.#byNumber.get(this.#stored.numberAt(position)) : this.#read(position)
      if (log !== undefined) yield log
    }
    yield* loaded
  }

  #loadIfStored(position: number | undefined): Log | undefined {
    return position === undefined || this.#isLoaded[position] === 1 ? undefined : this.#load(position)
  }

  #load(position: number): Log {
    const log = this.#read(position)
    this.#isLoaded[position] = 1
    this.add(log)
    return log
  }

  #read(position: number): Log {
    try {
      return readLog(this.#stored.item(position), this.#segments)
    } catch (error) {
      const message = `a log in the checkpoint is malformed: ${(error as Error).message}`
      throw new StorageFailure('corrupt', message, { nothingWritten: true, cause: error })
    }
  }
}

function* unloadedOf(stored: StoredLogs, isLoaded: Uint8Array): Generator<Buffer, void, undefined> {
  for (let position = 0; position < isLoaded.length; position++) {
    if (isLoaded[position] === 0) yield stored.item(position)
  }
}
