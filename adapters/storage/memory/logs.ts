import { reclaimablePoint } from '../../../src/core/retention.ts'
import { compareUtf8 } from '../../../src/model/bytes.ts'
import type { LogHeads, LogUpdate } from '../../../src/storage/commit-plan.ts'
import type {
  AppendRequest,
  Head,
  ReadRange,
  Reclaimed,
  ReclaimLimits,
  StoredBlock,
} from '../../../src/storage/contract.ts'
import { assertExpectedHead } from '../../../src/storage/heads.ts'
import { OrderedList } from '../../../src/storage/ordered-list.ts'
import { MemoryLog } from './log.ts'

/** All logs, and which of them have blocks to free. */
export class MemoryLogs implements LogHeads {
  readonly #logs = new Map<string, MemoryLog>()
  readonly #expiries = new LogDeadlines()
  readonly #trims = new LogDeadlines()

  /** Returns the stored head, which must not be handed out. */
  headOf(logId: string): Head | undefined {
    return this.#logs.get(logId)?.head
  }

  read(logId: string, range: ReadRange): StoredBlock[] {
    return this.#logs.get(logId)?.read(range) ?? []
  }

  append({ logId, expected, blocks, head }: AppendRequest): void {
    const log = this.#logs.get(logId)
    assertExpectedHead(logId, log?.head, expected)
    log!.append(blocks, head)
    this.#updateDeadlines(log!)
  }

  /** Applies an update. Frees the blocks of a deleted log at once. */
  apply({ logId, head, isNew }: LogUpdate): void {
    const log = this.#logs.get(logId)
    if (isNew) this.#logs.set(logId, new MemoryLog(logId, head!))
    else if (head !== undefined) log!.head = head
    else {
      this.#logs.delete(logId)
      this.#expiries.delete(log!)
      this.#trims.delete(log!)
    }
  }

  meteredBytes(logId: string): number {
    return this.#logs.get(logId)?.meteredBytes ?? 0
  }

  /** Does what `StorageSession.reclaim` does. */
  reclaim({ now, trimmedBefore, blocksMax }: ReclaimLimits): Reclaimed {
    const touched = new Set<string>()
    for (let left = blocksMax; ; ) {
      const expired = this.#expiries.due(now)
      const log = expired ?? this.#trims.due(trimmedBefore)
      if (log === undefined || left <= 0) return { more: log !== undefined, logIds: [...touched] }
      const before = log.meteredBytes
      left -=
        expired === undefined
          ? log.freeTrimmed(reclaimablePoint(log.head.trims, trimmedBefore), left)
          : log.freeExpired(now, left)
      if (log.meteredBytes < before) touched.add(log.id)
      this.#updateDeadlines(log)
    }
  }

  #updateDeadlines(log: MemoryLog): void {
    this.#expiries.set(log, log.nextExpiry)
    this.#trims.set(log, log.trimmedAt)
  }
}

/** The logs that have something to free, by time, so that finding those that are due examines no others. */
class LogDeadlines {
  readonly #times = new Map<MemoryLog, number>()
  readonly #order = new OrderedList<MemoryLog>(
    (a, b) => this.#times.get(a)! - this.#times.get(b)! || compareUtf8(a.id, b.id),
  )

  /** Sets the time of a log; infinite for never. */
  set(log: MemoryLog, time: number): void {
    if ((this.#times.get(log) ?? Number.POSITIVE_INFINITY) === time) return
    this.delete(log)
    if (time === Number.POSITIVE_INFINITY) return
    this.#times.set(log, time)
    this.#order.add(log)
  }

  delete(log: MemoryLog): void {
    if (!this.#times.has(log)) return
    this.#order.delete(log)
    this.#times.delete(log)
  }

  /** Returns the log with the earliest time if that is at or before `now`. */
  due(now: number): MemoryLog | undefined {
    const log = this.#order.first()
    return log !== undefined && this.#times.get(log)! <= now ? log : undefined
  }
}
