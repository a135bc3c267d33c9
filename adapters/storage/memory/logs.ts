import type {
  AppendRequest,
  Head,
  LogStart,
  ReadRange,
  Reclaimed,
  ReclaimLimits,
  StoredBlock,
} from '../../../src/storage/contract.ts'
import { emptyHead } from '../../../src/storage/empty-head.ts'
import { StorageConflict } from '../../../src/storage/errors.ts'
import { Deadlines } from './deadlines.ts'
import { MemoryLog } from './log.ts'

/** All logs, and which of them have blocks to free. Changes of the catalog's commits return how to take them back. */
export class Logs {
  readonly #logs = new Map<string, MemoryLog>()
  readonly #expiries = new Deadlines<MemoryLog>()
  readonly #trims = new Deadlines<MemoryLog>()

  head(logId: string): Head | undefined {
    return this.#logs.get(logId)?.head
  }

  read(logId: string, range: ReadRange): StoredBlock[] {
    return this.#logs.get(logId)?.read(range) ?? []
  }

  append({ logId, expected, block, head }: AppendRequest): void {
    const log = this.#existing(logId)
    if (!log.holds(expected)) throw new StorageConflict(`the head of log ${logId} is not the expected one`)
    log.append(block, head)
    this.#watch(log)
  }

  create(logId: string, epoch: number, createdAt: number, start: LogStart | undefined): () => void {
    if (this.#logs.has(logId)) throw new StorageConflict(`log ${logId} exists`)
    this.#logs.set(logId, new MemoryLog(logId, emptyHead(epoch, createdAt, start)))
    return () => this.#logs.delete(logId)
  }

  setEpoch(logId: string, epoch: number): () => void {
    const log = this.#existing(logId)
    const before = log.head.epoch
    log.setEpoch(epoch)
    return () => log.setEpoch(before)
  }

  /** Frees at once: dropping a log costs the same whatever it holds. */
  delete(logId: string, expectSeqNum: number | undefined): () => void {
    const log = this.#logs.get(logId)
    if (log === undefined) return () => {}
    if (expectSeqNum !== undefined && log.head.tail.seqNum !== expectSeqNum) {
      throw new StorageConflict(`the tail of log ${logId} is not the expected one`)
    }
    this.#logs.delete(logId)
    this.#expiries.set(log, undefined)
    this.#trims.set(log, undefined)
    return () => {
      this.#logs.set(logId, log)
      this.#watch(log)
    }
  }

  meteredBytes(logId: string): number {
    return this.#logs.get(logId)?.meteredBytes ?? 0
  }

  reclaim({ now, trimmedBefore, blocksMax }: ReclaimLimits): Reclaimed {
    const touched = new Set<MemoryLog>()
    for (let freed = 0; ; freed++) {
      const expired = this.#expiries.due(now)
      const log = expired ?? this.#trims.due(trimmedBefore)
      if (log === undefined || freed >= blocksMax) {
        return { more: log !== undefined, logIds: [...touched].map(({ id }) => id) }
      }
      touched.add(log)
      if (expired !== undefined) log.freeExpired()
      else log.freeFirst()
      this.#watch(log)
    }
  }

  #existing(logId: string): MemoryLog {
    const log = this.#logs.get(logId)
    if (log === undefined) throw new StorageConflict(`there is no log ${logId}`)
    return log
  }

  #watch(log: MemoryLog): void {
    this.#expiries.set(log, log.expiresAt)
    this.#trims.set(log, log.trimmedAt)
  }
}
