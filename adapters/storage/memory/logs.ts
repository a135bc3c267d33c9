import type { LogHeads, LogUpdate } from '../../../src/storage/commit-plan.ts'
import type {
  AppendRequest,
  Head,
  ReadRange,
  Reclaimed,
  ReclaimLimits,
  StoredBlock,
} from '../../../src/storage/contract.ts'
import { StorageConflict } from '../../../src/storage/errors.ts'
import { Arena } from './arena.ts'
import { Deadlines } from './deadlines.ts'
import { MemoryLog } from './log.ts'
import type { PackedLogs } from './packed-logs.ts'

/** The number of logs that are considered when one more has objects. */
const SCAN_MAX = 8

/** All logs, and which of them have blocks to free. */
export class MemoryLogs implements LogHeads {
  readonly #unpackedMax: number
  /** The logs that have objects. */
  readonly #logs = new Map<string, MemoryLog>()
  /** The other logs: idle ones with few records, if there are many. */
  #packed: PackedLogs | undefined
  /** The logs in the order in which they are considered for being packed. */
  #hand: Iterator<MemoryLog> | undefined
  /** The logs by number: an object, or the place among the packed ones. */
  readonly #byNumber: (MemoryLog | number | undefined)[] = []
  readonly #freeNumbers: number[] = []
  /** The memory for the first block of each log. */
  readonly #arena = new Arena()
  readonly #expiries = new Deadlines()
  readonly #trims = new Deadlines()

  /** @param unpackedMax How many logs may have objects before idle ones are packed. */
  constructor(unpackedMax: number) {
    this.#unpackedMax = unpackedMax
  }

  /** Whether there are so many logs that idle ones should be packed. */
  get isLarge(): boolean {
    return this.#logs.size > this.#unpackedMax
  }

  /** Packs idle logs from now on, whenever another one gets objects. */
  pack(packed: PackedLogs): void {
    this.#packed = packed
  }

  head(logId: string): Head | undefined {
    const log = this.#logs.get(logId) ?? this.#unpack(logId)
    return log?.head
  }

  read(logId: string, range: ReadRange): StoredBlock[] {
    const log = this.#logs.get(logId) ?? this.#unpack(logId)
    return log?.read(range) ?? []
  }

  allocate(logId: string, bytes: number): Uint8Array {
    return this.#find(logId)?.allocate(bytes, this.#packed !== undefined) ?? new Uint8Array(bytes)
  }

  append({ logId, expected, block, head }: AppendRequest): void {
    const log = this.#logs.get(logId) ?? this.#unpack(logId)
    // Compared here, because appends are frequent: a function would be called with new objects.
    if (
      log?.current.appendId !== expected.appendId ||
      log.current.tail.seqNum !== expected.seqNum ||
      log.current.epoch !== expected.epoch
    ) {
      throw new StorageConflict(`log ${logId} does not have the expected head`)
    }
    if (log.append(block, head)) this.#watch(log)
  }

  /** Returns the stored head, which must not be handed out. */
  headOf(logId: string): Head | undefined {
    return this.#find(logId)?.current
  }

  /** Frees the blocks of a deleted log at once: dropping it costs the same whatever its size. */
  apply({ logId, head, isNew }: LogUpdate): void {
    if (head !== undefined && isNew) this.#create(logId, head)
    else if (head !== undefined) this.#find(logId)!.current = head
    else this.#delete(this.#find(logId)!)
  }

  meteredBytes(logId: string): number {
    return this.#logs.get(logId)?.meteredBytes ?? this.#packed?.meteredBytes(logId) ?? 0
  }

  reclaim({ now, trimmedBefore, blocksMax }: ReclaimLimits): Reclaimed {
    const touched = new Set<string>()
    for (let freed = 0; ; freed++) {
      const expired = this.#expiries.due(now)
      const number = expired ?? this.#trims.due(trimmedBefore)
      if (number === undefined || freed >= blocksMax) {
        return { more: number !== undefined, logIds: [...touched] }
      }
      const known = this.#byNumber[number]!
      const log = typeof known === 'number' ? this.#unpack(this.#packed!.idAt(known))! : known
      if (expired === undefined) log.freeFirst()
      if (expired === undefined || log.freeExpired(now)) touched.add(log.id)
      this.#watch(log)
    }
  }

  #find(logId: string): MemoryLog | undefined {
    const log = this.#logs.get(logId) ?? this.#unpack(logId)
    if (log !== undefined) log.wasUsed = true
    return log
  }

  #unpack(logId: string): MemoryLog | undefined {
    const packed = this.#packed?.find(logId)
    return packed && this.#add(MemoryLog.unpacked(packed, this.#arena))
  }

  #create(logId: string, head: Head): void {
    const number = this.#freeNumbers.pop() ?? this.#byNumber.length
    this.#add(new MemoryLog(logId, number, head, this.#arena))
  }

  #add(log: MemoryLog): MemoryLog {
    this.#logs.set(log.id, log)
    this.#byNumber[log.number] = log
    if (this.#packed !== undefined && this.isLarge) this.#packIdle(log)
    return log
  }

  #delete(log: MemoryLog): void {
    this.#logs.delete(log.id)
    this.#packed?.delete(log.id)
    this.#expiries.set(log.number, undefined)
    this.#trims.set(log.number, undefined)
    this.#byNumber[log.number] = undefined
    this.#freeNumbers.push(log.number)
  }

  /** Packs a few logs that were not used since they were last considered. */
  #packIdle(except?: MemoryLog): void {
    for (let left = SCAN_MAX; left > 0 && this.isLarge; left--) {
      this.#hand ??= this.#logs.values()
      const { value: log } = this.#hand.next()
      if (log === undefined) this.#hand = undefined
      else if (log.wasUsed || log === except) log.wasUsed = false
      else {
        const place = this.#packed!.put(log)
        if (place === undefined) continue
        this.#byNumber[log.number] = place
        this.#logs.delete(log.id)
      }
    }
  }

  #watch(log: MemoryLog): void {
    this.#expiries.set(log.number, log.expiresAt)
    this.#trims.set(log.number, log.trimmedAt)
  }
}
