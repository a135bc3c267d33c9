import type { StreamPosition } from '../../model/position.ts'
import type { StoredBlock } from '../../storage/contract.ts'
import { ReadBatch, RecordBatch } from '../../storage/record-batch.ts'

/** An append as live followers receive it. All followers share one object. */
export interface LiveBatch {
  readonly block: StoredBlock
  /**
   * The batch that followers of a plain stream deliver. On an encrypted stream only its summary is of use.
   */
  readonly batch: ReadBatch & { readonly tail: StreamPosition }
}

/** Returns a live batch with the tail that the append left (docs/protocol.md "Session batches"). */
export function liveBatch(block: StoredBlock): LiveBatch {
  const { firstSeqNum, endSeqNum, lastTimestamp, meteredBytes } = block
  const tail: StreamPosition = { seqNum: endSeqNum, timestamp: lastTimestamp }
  const summary = { count: endSeqNum - firstSeqNum, meteredBytes, lastSeqNum: endSeqNum - 1 }
  const batch = new ReadBatch(RecordBatch.ofData(block.data), summary, tail)
  return { block, batch: batch as LiveBatch['batch'] }
}

/** Returns what a follower delivers of an encrypted batch with these records in plain text. */
export function withData({ batch }: LiveBatch, data: Uint8Array): ReadBatch {
  return new ReadBatch(RecordBatch.ofData(data), batch, batch.tail)
}

/**
 * The latest appends of a stream, shared by all its followers, and the followers waiting for the next one. A
 * follower looks batches up by sequence number, so it never misses or repeats a record: older ones it reads
 * from the storage.
 */
export class LiveTail {
  readonly #batchesMax: number
  readonly #bytesMax: number
  #batches: LiveBatch[] = []
  #bytes = 0
  #lastRead: { readonly blocks: readonly Uint8Array[]; readonly batch: RecordBatch } | undefined
  /** Created when something waits: there may be 100,000 streams. */
  #wakeups: Set<() => void> | undefined
  /** How many followers there are. Changed by this class only. */
  followers = 0

  constructor(limits: { readonly batches: number; readonly bytes: number }) {
    this.#batchesMax = limits.batches
    this.#bytesMax = limits.bytes
  }

  get waiting(): number {
    return this.#wakeups?.size ?? 0
  }

  /** Keeps batches until the returned function is called. Without followers none are kept. */
  follow(): () => void {
    this.followers++
    let following = true
    return () => {
      if (!following) return
      following = false
      this.followers--
      if (this.followers === 0) this.#clear()
    }
  }

  publish(live: LiveBatch): void {
    if (this.followers === 0) return
    const last = this.#batches.at(-1)?.block
    if (last !== undefined && live.block.firstSeqNum < last.endSeqNum) return
    if (last !== undefined && live.block.firstSeqNum > last.endSeqNum) this.#clear()
    this.#batches.push(live)
    this.#bytes += live.batch.meteredBytes
    while (this.#batches.length > this.#batchesMax || this.#bytes > this.#bytesMax) {
      if (this.#batches.length === 1) break
      this.#bytes -= this.#batches.shift()!.batch.meteredBytes
    }
    this.wake()
  }

  /** Returns the append that begins at exactly `seqNum`, if it is still kept. */
  at(seqNum: number): LiveBatch | undefined {
    let low = 0
    let high = this.#batches.length - 1
    while (low <= high) {
      const middle = (low + high) >>> 1
      const found = this.#batches[middle]!
      if (found.block.firstSeqNum === seqNum) return found
      if (found.block.firstSeqNum < seqNum) low = middle + 1
      else high = middle - 1
    }
    return undefined
  }

  /**
   * Returns the records of stored blocks. Followers that lag together read the same blocks one after another,
   * and share what the first one decodes. Kept until the next read, or until a follower has caught up.
   */
  recordsOf(blocks: readonly Uint8Array[]): RecordBatch {
    const isSame =
      this.#lastRead?.blocks.length === blocks.length &&
      this.#lastRead.blocks.every((block, index) => block === blocks[index])
    if (isSame) return this.#lastRead!.batch
    const batch = RecordBatch.ofBlocks(blocks)
    if (this.followers > 1) this.#lastRead = { blocks, batch }
    return batch
  }

  /** Calls back once, at the next `publish` or `wake`. The caller has caught up. */
  onNext(callback: () => void): void {
    this.#lastRead = undefined
    this.#wakeups ??= new Set()
    this.#wakeups.add(callback)
  }

  /** Cancels {@link onNext}. */
  cancel(callback: () => void): void {
    this.#wakeups?.delete(callback)
  }

  wake(): void {
    const callbacks = this.#wakeups
    this.#wakeups = undefined
    for (const callback of callbacks ?? []) callback()
  }

  #clear(): void {
    this.#batches = []
    this.#bytes = 0
    this.#lastRead = undefined
  }
}
