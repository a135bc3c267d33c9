import { streamTailOf } from '../../core/sequence.ts'
import type { StreamTail } from '../../model/position.ts'
import type { Head, StoredBlock } from '../../storage/contract.ts'
import { ReadBatch, RecordBatch } from '../../storage/record-batch.ts'

/** An append as live followers receive it. All followers share one object. */
export interface LiveBatch {
  readonly block: StoredBlock
  /** The batch that followers of a plain stream deliver. On an encrypted one only its summary is of use. */
  readonly batch: ReadBatch & { readonly tail: StreamTail }
}

/**
 * Returns a live batch with the tail of a head, which is that of its append or of a later one
 * (docs/protocol.md "Session batches"). The end of the block need not be a tail: it may be a part of an
 * append. Only the last batch of a stream has a tail that is closed, because its receiver expects nothing
 * more.
 */
export function liveBatch(block: StoredBlock, head: Head): LiveBatch {
  const { firstSeqNum, endSeqNum, meteredBytes } = block
  const isLast = endSeqNum === head.tail.seqNum
  const tail = streamTailOf(isLast ? head : { tail: head.tail })
  const summary = { count: endSeqNum - firstSeqNum, meteredBytes, lastSeqNum: endSeqNum - 1 }
  const batch = new ReadBatch(new RecordBatch(undefined, [block.data]), summary, tail)
  return { block, batch: batch as LiveBatch['batch'] }
}

/** Returns what a follower delivers of an encrypted batch with these records in plain text. */
export function withData({ batch }: LiveBatch, data: Uint8Array): ReadBatch {
  return new ReadBatch(new RecordBatch(undefined, [data]), batch, batch.tail)
}

/** A read that is notified of appends. */
export interface Follower {
  readonly isWaiting: boolean
  /** Called after appends, and whenever else there may be something to do. Must not throw. */
  wake(): void
}

/** How far a follower may lag behind before it reads from the storage: see `EngineLimits`. */
export interface LiveTailLimits {
  readonly followerLagBatches: number
  readonly followerLagBytes: number
}

/**
 * The latest appends of a stream, shared by all its followers. A follower looks batches up by sequence
 * number, so it never misses or repeats a record: older ones it reads from the storage.
 */
export class LiveTail {
  readonly #limits: LiveTailLimits
  #batches: LiveBatch[] = []
  #bytes = 0
  readonly #followers = new Set<Follower>()
  #isWaking = false

  constructor(limits: LiveTailLimits) {
    this.#limits = limits
  }

  get followers(): number {
    return this.#followers.size
  }

  get waiting(): number {
    let waiting = 0
    for (const { isWaiting } of this.#followers) if (isWaiting) waiting++
    return waiting
  }

  /** Keeps batches until the returned function is called. Without followers none are kept. */
  follow(follower: Follower): () => void {
    this.#followers.add(follower)
    return () => {
      this.#followers.delete(follower)
      if (this.followers === 0) this.clear()
    }
  }

  /** Keeps a batch. Appends of one turn wake the followers once, after their acknowledgement. */
  publish(live: LiveBatch): void {
    if (this.#followers.size === 0) return
    const last = this.#batches.at(-1)?.block
    if (last !== undefined && live.block.firstSeqNum < last.endSeqNum) return
    if (last !== undefined && live.block.firstSeqNum > last.endSeqNum) this.clear()
    this.#batches.push(live)
    this.#bytes += live.batch.meteredBytes
    const { followerLagBatches, followerLagBytes } = this.#limits
    while (this.#batches.length > followerLagBatches || this.#bytes > followerLagBytes) {
      if (this.#batches.length === 1) break
      this.#bytes -= this.#batches.shift()!.batch.meteredBytes
    }
    if (this.#isWaking) return
    this.#isWaking = true
    queueMicrotask(() => this.wake())
  }

  /** Returns the append that begins at exactly `seqNum`, if it is still kept. */
  at(seqNum: number): LiveBatch | undefined {
    // Most followers want the last one.
    return this.#batches.findLast(({ block }) => block.firstSeqNum === seqNum)
  }

  wake(): void {
    this.#isWaking = false
    for (const follower of this.#followers) follower.wake()
  }

  /** Drops all batches. Followers read on from the storage. */
  clear(): void {
    this.#batches = []
    this.#bytes = 0
  }
}
