import { macrotask } from '../../../../src/runtime/macrotask.ts'
import { StorageFailure } from '../../../../src/storage/errors.ts'
import { RecentMap } from '../../../../src/storage/recent-map.ts'
import { ByteReader } from '../files/bytes.ts'
import type { Log } from './log.ts'
import type { Segment } from './segment.ts'
import { type LogFacts, type LogPlaces, logNumber, readLog, readLogKey, StoredLogs } from './stored-logs.ts'
import { itemAt, itemsIn, itemsOf, type PageReader, type StoredPage } from './stored-pages.ts'

/** How many logs that were only read stay decoded. */
const RECENT_LOGS = 1024

/** How many pages are read in one turn of the event loop. */
const TURN_PAGES = 16

/** Logs in memory. */
class LogLayer {
  /** Null: deleted. */
  readonly byNumber = new Map<number, Log | null>()
  readonly byId = new Map<string, Log>()

  set(log: Log): void {
    this.byNumber.set(log.number, log)
    this.byId.set(log.id, log)
  }

  delete(log: Log): void {
    this.byNumber.delete(log.number)
    this.byId.delete(log.id)
  }
}

/** The logs: those of the checkpoint, which are read from its file, and in memory those changed since. */
export class DirectoryLogs {
  readonly #segments: ReadonlyMap<number, Segment>
  #stored = new StoredLogs()
  /** The changes since the checkpoint. */
  #changed = new LogLayer()
  /** The changes before the checkpoint that is being written began. Not modified. */
  #frozen: LogLayer | undefined
  /** Stored logs that the current group needs. */
  #retained = new LogLayer()
  /** Ids without a log that the current group needs to know about. */
  readonly #absent = new Set<string>()
  /** Stored logs that were read lately, by id. */
  readonly #recent = new RecentMap<string, Log>(RECENT_LOGS)

  constructor(segments: ReadonlyMap<number, Segment>) {
    this.#segments = segments
  }

  /** Adds logs of a checkpoint, whose bytes are kept. Throws `RangeError` if they are not in order. */
  addStored(bytes: Buffer): void {
    this.#stored.add(bytes)
  }

  /** Sets the pages of the logs and the buckets of their hashes, which are read on use. */
  setPlaces(places: LogPlaces, lastNumber: number, read: PageReader): void {
    this.#stored = new StoredLogs(read, places, lastNumber)
  }

  /** The number of logs that {@link addStored} added. */
  get storedSize(): number {
    return this.#stored.added
  }

  /** How many logs were changed since the checkpoint. */
  get changedSize(): number {
    return this.#changed.byNumber.size
  }

  add(log: Log): void {
    this.#changed.set(log)
  }

  delete(log: Log): void {
    this.#changed.delete(log)
    const isBelow = log.number <= this.#stored.lastNumber || this.#frozen?.byNumber.has(log.number)
    if (isBelow) this.#changed.byNumber.set(log.number, null)
    this.#recent.delete(log.id)
  }

  /** Returns a log that is in memory, or was retained. It must not be modified. */
  withId(id: string): Log | undefined {
    const log = this.#known(id)
    if (log === undefined && this.#stored.pageCount > 0 && !this.#absent.has(id)) {
      throw new RangeError(`log ${id} was not loaded`)
    }
    return log ?? undefined
  }

  /** Returns a log that is in memory, or was retained. It must not be modified. */
  withNumber(number: number): Log | undefined {
    return this.#numbered(number) ?? undefined
  }

  /** Returns a log that is in memory, or was retained, to modify it. */
  change(number: number): Log | undefined {
    const changed = this.#changed.byNumber.get(number)
    if (changed !== undefined) return changed ?? undefined
    const below = this.#numbered(number)
    if (below === undefined || below === null) return undefined
    const log = this.#frozen?.byNumber.has(number) ? below.clone() : below
    this.#changed.set(log)
    this.#recent.delete(log.id)
    return log
  }

  /** Loads a log, and resolves to it to be modified if the condition holds. No checkpoint may be written. */
  async changeIf(number: number, condition: (log: Log) => boolean): Promise<Log | undefined> {
    const log = await this.loadNumber(number)
    if (log === undefined || !condition(log)) return undefined
    if (this.#numbered(number) === undefined) this.#retained.set(log)
    return this.change(number)
  }

  /** Resolves to a log, which must not be modified. */
  async load(id: string): Promise<Log | undefined> {
    const known = this.#known(id) ?? this.#recent.get(id)
    if (known !== undefined) return known
    const log = await this.#find((stored) => stored.withId(id))
    // It may have been created meanwhile.
    if (log === undefined) return this.#known(id) ?? undefined
    if (this.#numbered(log.number) === undefined) this.#recent.set(id, log)
    return log
  }

  /** Resolves to a log, which must not be modified. */
  async loadNumber(number: number): Promise<Log | undefined> {
    let log = this.#numbered(number)
    if (log === undefined) {
      const stored = await this.#find((logs) => logs.withNumber(number))
      log = this.#numbered(number)
      if (log === undefined) log = stored
    }
    return log ?? undefined
  }

  /** Loads a log for {@link withId}, until {@link release}. Undefined if it is in memory. */
  retainId(id: string): Promise<void> | undefined {
    if (this.#stored.pageCount === 0 || this.#known(id) !== undefined) return undefined
    return this.load(id).then((log) => {
      if (log === undefined) this.#absent.add(id)
      else if (this.#numbered(log.number) === undefined) this.#retained.set(log)
    })
  }

  /**
   * Loads a log for {@link withNumber} and {@link change}, until {@link release}. Undefined if it is in
   * memory.
   */
  retain(number: number): Promise<void> | undefined {
    if (number > this.#stored.lastNumber || this.#numbered(number) !== undefined) return undefined
    return this.#find((stored) => stored.withNumber(number)).then((log) => {
      if (log !== undefined && this.#numbered(number) === undefined) this.#retained.set(log)
    })
  }

  /** Drops what was retained. */
  release(): void {
    if (this.#retained.byNumber.size > 0) this.#retained = new LogLayer()
    if (this.#absent.size > 0) this.#absent.clear()
  }

  /** The logs that were changed since the checkpoint: only they have blocks in journals. */
  *changed(): Generator<Log, void, undefined> {
    for (const log of this.#changed.byNumber.values()) if (log !== null) yield log
  }

  /** The logs that were changed since the checkpoint, by number. Null: deleted. */
  changedEntries(): Iterable<[number: number, log: Log | null]> {
    return this.#changed.byNumber
  }

  /** Iterates over all logs, ascending by number, also while they change. Keeps none in memory. */
  async *values(): AsyncGenerator<Log, void, undefined> {
    let after = 0
    // A checkpoint that replaces the one before has logs that were only in memory.
    for (let stored: StoredLogs | undefined; stored !== this.#stored; ) {
      stored = this.#stored
      let index = stored.pageIndexOf(after + 1)
      for (let pages = 0; index < stored.pageCount && stored === this.#stored; index++) {
        // Pages are read without a turn of the event loop if the system has them in memory.
        if (pages++ % TURN_PAGES === 0) await macrotask()
        let page: StoredPage | undefined
        try {
          page = await stored.page(index)
        } catch (error) {
          if (stored === this.#stored) throw error
        }
        for (const item of page === undefined ? [] : itemsIn(page)) {
          if (stored !== this.#stored) break
          const number = logNumber(item)
          if (number <= after) continue
          after = number
          const known = this.#numbered(number)
          if (known !== null) yield known ?? this.#decode(item)
        }
      }
      const numbers = new Set([...(this.#frozen?.byNumber.keys() ?? []), ...this.#changed.byNumber.keys()])
      for (const number of [...numbers].sort((a, b) => a - b)) {
        if (stored !== this.#stored) break
        if (number <= after) continue
        after = number
        const log = this.#numbered(number)
        if (log) yield log
      }
    }
  }

  /** Resolves to the numbers of the logs of which something may have to be freed. */
  async due(time: number, isDue: (log: Log) => boolean): Promise<number[]> {
    const numbers = [...this.changed()].filter(isDue).map(({ number }) => number)
    const stored = this.#stored
    let pages = 0
    for (const index of stored.duePages(time)) {
      if (++pages % TURN_PAGES === 0) await macrotask()
      const page = await stored.page(index)
      for (const item of itemsIn(page)) {
        const key = readLogKey(new ByteReader(item))
        if (key.due <= time && this.#numbered(key.number) === undefined) numbers.push(key.number)
      }
    }
    return numbers
  }

  /** Captures the logs as they are now for a checkpoint, until {@link rebase} or {@link thaw}. */
  freeze(): void {
    this.#frozen = this.#changed
    this.#changed = new LogLayer()
  }

  /** Gives up the checkpoint. */
  thaw(): void {
    for (const [number, log] of this.#frozen?.byNumber ?? []) {
      if (this.#changed.byNumber.has(number)) continue
      if (log === null) this.#changed.byNumber.set(number, null)
      else this.#changed.set(log)
    }
    this.#frozen = undefined
  }

  /** Continues with a checkpoint of what was captured. */
  rebase(checkpoint: DirectoryLogs): void {
    this.#stored = checkpoint.#stored
    this.#frozen = undefined
    this.#recent.clear()
    this.release()
  }

  /** The logs that were captured and have changed since the checkpoint before, ascending by number. */
  frozen(): Log[] {
    const { byNumber = new Map<number, Log | null>() } = this.#frozen ?? {}
    const numbers = Float64Array.from(byNumber.keys()).sort()
    return [...numbers].flatMap((number) => byNumber.get(number) ?? [])
  }

  /**
   * The logs that were captured, in chunks of about a page: bytes as a checkpoint stores them, or those of
   * `changed`, which replace {@link frozen}.
   */
  async *snapshot(changed: readonly LogFacts[]): AsyncGenerator<(Buffer | LogFacts)[], void, undefined> {
    const { stored, frozen } = { stored: this.#stored, frozen: this.#frozen }
    let next = 0
    for (let index = 0; index < stored.pageCount; index++) {
      const page = await stored.page(index)
      const chunk: (Buffer | LogFacts)[] = []
      for (let i = 0; i < itemsOf(page); i++) {
        const item = itemAt(page, i)
        const number = logNumber(item)
        while (next < changed.length && changed[next]!.number <= number) chunk.push(changed[next++]!)
        if (!frozen?.byNumber.has(number)) chunk.push(item)
      }
      yield chunk
    }
    yield changed.slice(next)
  }

  #known(id: string): Log | null | undefined {
    const changed = this.#changed.byId.get(id)
    if (changed !== undefined) return changed
    const below = this.#frozen?.byId.get(id) ?? this.#retained.byId.get(id)
    if (below === undefined) return undefined
    const now = this.#changed.byNumber.get(below.number)
    return now === undefined ? below : now
  }

  /** Null: deleted. Undefined: not in memory. */
  #numbered(number: number): Log | null | undefined {
    for (const layer of [this.#changed, this.#frozen, this.#retained]) {
      const log = layer?.byNumber.get(number)
      if (log !== undefined) return log
    }
    return undefined
  }

  async #find(
    find: (stored: StoredLogs) => Buffer | undefined | Promise<Buffer | undefined>,
  ): Promise<Log | undefined> {
    for (;;) {
      const stored = this.#stored
      let item: Buffer | undefined
      try {
        const found = find(stored)
        item = found instanceof Promise ? await found : found
      } catch (error) {
        if (stored === this.#stored) throw error
        continue
      }
      // A checkpoint may have replaced this one meanwhile, and the log may have been changed.
      if (stored !== this.#stored) continue
      if (item === undefined) return undefined
      const known = this.#numbered(logNumber(item))
      return known === undefined ? this.#decode(item) : (known ?? undefined)
    }
  }

  #decode(item: Buffer): Log {
    try {
      return readLog(item, this.#segments)
    } catch (error) {
      const message = `a log in the checkpoint is malformed: ${(error as Error).message}`
      throw new StorageFailure('corrupt', message, { nothingWritten: true, cause: error })
    }
  }
}
