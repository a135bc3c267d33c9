import type { MemoryLog } from './log.ts'
import type { LogMap } from './logs.ts'
import type { NumberedLogs } from './numbered-deadlines.ts'
import { type NewLog, PackedLogTable } from './packed-log-table.ts'

/** Factor by which more logs may have objects while they are used in turn. */
const GROWTH_MAX = 32

/** The number of logs that are considered for being packed when one more has an object. */
const SCAN_MAX = 8

/** Logs of which idle ones with few records have no objects, but an entry of a {@link PackedLogTable}. */
export class PackedLogMap implements LogMap, NumberedLogs {
  readonly #idleMax: number
  /** How many logs may have objects now. */
  #unpackedMax: number
  /** How many were packed so far. */
  #packings = 0
  readonly #unpacked = new Map<string, MemoryLog>()
  readonly #packed: PackedLogTable
  /** The log to consider next for being packed. */
  #hand: Iterator<MemoryLog> | undefined
  /** Logs by serial number: an object, or the slot of its entry. A log without deadlines has the number 0. */
  readonly #bySerial: (MemoryLog | number | undefined)[] = [undefined]
  readonly #freeSerials: number[] = []

  /**
   * @param idleMax How many logs may have objects if no more than that are in use. If more are, packing them
   *   would take more time than a garbage collector needs for their objects.
   */
  constructor(newLog: NewLog, idleMax: number) {
    this.#packed = new PackedLogTable(newLog)
    this.#idleMax = idleMax
    this.#unpackedMax = idleMax
  }

  get size(): number {
    return this.#unpacked.size
  }

  values(): Iterable<MemoryLog> {
    return this.#unpacked.values()
  }

  get(logId: string): MemoryLog | undefined {
    const log = this.#unpacked.get(logId)
    if (log !== undefined) {
      log.wasUsed = true
      return log
    }
    const slot = this.#packed.find(logId)
    return slot === 0 ? undefined : this.#unpack(logId, slot)
  }

  /** Adds a log. */
  set(logId: string, log: MemoryLog): void {
    this.#unpacked.set(logId, log)
    this.#lowerMax()
    this.#packIdle(log)
  }

  delete(logId: string): void {
    const log = this.get(logId)
    if (log === undefined) return
    this.#unpacked.delete(logId)
    if (log.serial === 0) return
    this.#bySerial[log.serial] = undefined
    this.#freeSerials.push(log.serial)
  }

  /** Gives a log a serial number that is free, unless it has one. It keeps it until it is deleted. */
  number(log: MemoryLog): void {
    if (log.serial > 0) return
    log.serial = this.#freeSerials.pop() ?? this.#bySerial.length
    this.#bySerial[log.serial] = log
  }

  /** Returns the log with a serial number, which must exist. */
  withSerial(serial: number): MemoryLog {
    const known = this.#bySerial[serial]!
    return typeof known === 'number' ? this.#unpack(this.#packed.idAt(known), known) : known
  }

  #unpack(logId: string, slot: number): MemoryLog {
    // It would still have its object if that many more were allowed.
    const missing = this.#packings - this.#packed.packingOf(slot)
    if (this.#unpackedMax + missing <= GROWTH_MAX * this.#idleMax) this.#unpackedMax++
    else this.#lowerMax()
    const log = this.#packed.take(logId, slot)
    if (log.serial > 0) this.#bySerial[log.serial] = log
    this.#unpacked.set(logId, log)
    this.#packIdle(log)
    return log
  }

  #lowerMax(): void {
    if (this.#unpackedMax > this.#idleMax) this.#unpackedMax--
  }

  /** Packs a few logs, but not the one that has just got an object, if too many have objects. */
  #packIdle(except: MemoryLog): void {
    for (let left = SCAN_MAX; left > 0 && this.#unpacked.size > this.#unpackedMax; left--) {
      this.#hand ??= this.#unpacked.values()
      const { value: log } = this.#hand.next()
      if (log === undefined) this.#hand = undefined
      else if (log.wasUsed || log === except) log.wasUsed = false
      else {
        const slot = this.#packed.put(log, this.#packings)
        if (slot === undefined) continue
        this.#packings++
        if (log.serial > 0) this.#bySerial[log.serial] = slot
        this.#unpacked.delete(log.id)
        log.release()
      }
    }
  }
}
