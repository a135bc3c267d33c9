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
import { LogDeadlines } from './deadlines.ts'
import { MemoryLog } from './log.ts'

/** All logs, and which of them have blocks to free. */
export interface Logs extends LogHeads {
  /** Returns the stored head, which must not be handed out. */
  headOf(logId: string): Head | undefined
  read(logId: string, range: ReadRange): StoredBlock[]
  allocate(logId: string, bytes: number): Uint8Array
  append(request: AppendRequest): void
  /** Applies an update. Frees the blocks of a deleted log at once. */
  apply(update: LogUpdate): void
  meteredBytes(logId: string): number
  /** Whether a log has blocks to free. */
  isDue(limits: ReclaimLimits): boolean
  /** Frees a block of a log that is due. Returns its id, or undefined if the block was only extended. */
  freeNext(limits: ReclaimLimits): string | undefined
}

/** Frees blocks. Returns what `StorageSession.reclaim` does. */
export function reclaim(logs: Logs, limits: ReclaimLimits): Reclaimed {
  const touched = new Set<string>()
  for (let freed = 0; logs.isDue(limits); freed++) {
    if (freed >= limits.blocksMax) return { more: true, logIds: [...touched] }
    const logId = logs.freeNext(limits)
    if (logId !== undefined) touched.add(logId)
  }
  return { more: false, logIds: [...touched] }
}

/** Logs that have objects of their own. */
export class MemoryLogs implements Logs {
  readonly #logs = new Map<string, MemoryLog>()
  readonly #expiries = new LogDeadlines('expiryDue')
  readonly #trims = new LogDeadlines('trimDue')

  get size(): number {
    return this.#logs.size
  }

  /** Iterates over the logs, also over those that are added meanwhile. */
  values(): Iterator<MemoryLog> {
    return this.#logs.values()
  }

  headOf(logId: string): Head | undefined {
    return this.#logs.get(logId)?.current
  }

  read(logId: string, range: ReadRange): StoredBlock[] {
    return this.#logs.get(logId)?.read(range) ?? []
  }

  allocate(logId: string, bytes: number): Uint8Array {
    return this.#logs.get(logId)?.allocate(bytes) ?? new Uint8Array(bytes)
  }

  append({ logId, expected, block, head }: AppendRequest): void {
    const log = this.#logs.get(logId)
    // Compared here, because appends are frequent: a function would be called with new objects.
    if (
      log?.current.appendId !== expected.appendId ||
      log.current.tail.seqNum !== expected.seqNum ||
      log.current.epoch !== expected.epoch
    ) {
      throw new StorageConflict(`log ${logId} does not have the expected head`)
    }
    if (log.append(block, head)) this.#updateDeadlines(log)
  }

  /** Dropping a log costs the same whatever its size. */
  apply({ logId, head, isNew }: LogUpdate): void {
    if (isNew) {
      this.#logs.set(logId, new MemoryLog(logId, head!))
      return
    }
    const log = this.#logs.get(logId)!
    if (head === undefined) {
      this.#logs.delete(logId)
      this.#expiries.set(log, undefined)
      this.#trims.set(log, undefined)
    } else log.current = head
  }

  meteredBytes(logId: string): number {
    return this.#logs.get(logId)?.meteredBytes ?? 0
  }

  isDue({ now, trimmedBefore }: ReclaimLimits): boolean {
    return (this.#expiries.due(now) ?? this.#trims.due(trimmedBefore)) !== undefined
  }

  freeNext({ now, trimmedBefore }: ReclaimLimits): string | undefined {
    const expired = this.#expiries.due(now)
    const log = expired ?? this.#trims.due(trimmedBefore)!
    if (expired === undefined) log.freeFirst()
    const isFreed = expired === undefined || log.freeExpired(now)
    this.#updateDeadlines(log)
    return isFreed ? log.id : undefined
  }

  #updateDeadlines(log: MemoryLog): void {
    this.#expiries.set(log, log.expiresAt)
    this.#trims.set(log, log.trimmedAt)
  }
}
