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
import { copyHead } from '../../../src/storage/heads.ts'
import { type Deadlines, LogDeadlines } from './deadlines.ts'
import { MemoryLog, type SmallBlockList } from './log.ts'

/** The logs by id. */
export interface LogMap {
  /** The number of logs that have objects. */
  readonly size: number
  get(logId: string): MemoryLog | undefined
  /** Iterates over the logs that have objects. */
  values(): Iterable<MemoryLog>
  set(logId: string, log: MemoryLog): void
  delete(logId: string): void
}

/** All logs, and which of them have blocks to free. The code that packs logs replaces the members. */
export class MemoryLogs implements LogHeads {
  logs: LogMap = new Map<string, MemoryLog>()
  expiries: Deadlines = new LogDeadlines('expiryDue')
  trims: Deadlines = new LogDeadlines('trimDue')
  /** Makes the list of the blocks of a new log, which is small. By default, logs have lists with objects. */
  smallBlocks: (() => SmallBlockList) | undefined

  /** Makes the object of a log, without keeping it. */
  newLog(logId: string, head: Head): MemoryLog {
    return new MemoryLog(logId, head, this.smallBlocks?.())
  }

  head(logId: string): Head | undefined {
    const head = this.headOf(logId)
    return head && copyHead(head)
  }

  read(logId: string, range: ReadRange): StoredBlock[] {
    return this.logs.get(logId)?.read(range) ?? []
  }

  allocate(logId: string, bytes: number): Uint8Array {
    return this.logs.get(logId)?.allocate(bytes) ?? new Uint8Array(bytes)
  }

  append({ logId, expected, block, head }: AppendRequest): void {
    const log = this.logs.get(logId)
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
    return this.logs.get(logId)?.current
  }

  /** Frees the blocks of a deleted log at once: dropping it costs the same whatever its size. */
  apply({ logId, head, isNew }: LogUpdate): void {
    const log = this.logs.get(logId)!
    if (head === undefined) {
      this.logs.delete(logId)
      log.release()
      this.expiries.set(log, undefined)
      this.trims.set(log, undefined)
    } else if (isNew) this.logs.set(logId, this.newLog(logId, head))
    else log.current = head
  }

  meteredBytes(logId: string): number {
    return this.logs.get(logId)?.meteredBytes ?? 0
  }

  reclaim({ now, trimmedBefore, blocksMax }: ReclaimLimits): Reclaimed {
    const touched = new Set<string>()
    for (let freed = 0; ; freed++) {
      const expired = this.expiries.due(now)
      const log = expired ?? this.trims.due(trimmedBefore)
      if (log === undefined || freed >= blocksMax) {
        return { more: log !== undefined, logIds: [...touched] }
      }
      if (expired === undefined) log.freeFirst()
      if (expired === undefined || log.freeExpired(now)) touched.add(log.id)
      this.#watch(log)
    }
  }

  #watch(log: MemoryLog): void {
    this.expiries.set(log, log.expiresAt)
    this.trims.set(log, log.trimmedAt)
  }
}
