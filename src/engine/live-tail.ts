import type { StreamPosition } from '../model/position.ts'
import type { StoredBlock } from '../storage/contract.ts'
import { ReadBatch, RecordBatch } from '../storage/record-batch.ts'

/** One append as live followers get it: the same object for all of them. */
export interface LiveBatch {
  readonly firstSeqNum: number
  readonly endSeqNum: number
  readonly lastTimestamp: number
  /** On an encrypted stream only what it says of the records: each follower opens `sealed` with its key. */
  readonly batch: ReadBatch & { readonly tail: StreamPosition }
  readonly sealed?: StoredBlock
}

/** What a follower gets of a sealed batch whose records are in this plain block. */
export function withData({ batch }: LiveBatch, data: Uint8Array): ReadBatch {
  return new ReadBatch(RecordBatch.ofData(data), batch, batch.tail)
}

/**
 * The last few appends of a stream, kept once for all its live followers, and the followers that wait for the next. A follower finds its
 * place by sequence number, so it can neither miss nor repeat a record: what is no longer here it reads from the storage.
 */
export class LiveTail {
  readonly #batchesMax: number
  readonly #bytesMax: number
  #batches: LiveBatch[] = []
  #bytes = 0
  readonly #wakeups = new Set<() => void>()
  #followers = 0

  constructor(limits: { readonly batches: number; readonly bytes: number }) {
    this.#batchesMax = limits.batches
    this.#bytesMax = limits.bytes
  }

  get followers(): number {
    return this.#followers
  }

  get waiting(): number {
    return this.#wakeups.size
  }

  /** Batches are kept only while somebody follows. The returned function ends it. */
  follow(): () => void {
    this.#followers++
    let following = true
    return () => {
      if (!following) return
      following = false
      this.#followers--
      if (this.#followers === 0) this.#clear()
    }
  }

  publish(live: LiveBatch): void {
    if (this.#followers === 0) return
    const last = this.#batches.at(-1)
    if (last !== undefined && live.firstSeqNum < last.endSeqNum) return
    if (last !== undefined && live.firstSeqNum > last.endSeqNum) this.#clear()
    this.#batches.push(live)
    this.#bytes += live.batch.meteredBytes
    while (this.#batches.length > this.#batchesMax || this.#bytes > this.#bytesMax) {
      if (this.#batches.length === 1) break
      this.#bytes -= this.#batches.shift()!.batch.meteredBytes
    }
    this.wake()
  }

  /** The append that begins exactly at `seqNum`, if it is still here. */
  at(seqNum: number): LiveBatch | undefined {
    let low = 0
    let high = this.#batches.length - 1
    while (low <= high) {
      const middle = (low + high) >>> 1
      const found = this.#batches[middle]!
      if (found.firstSeqNum === seqNum) return found
      if (found.firstSeqNum < seqNum) low = middle + 1
      else high = middle - 1
    }
    return undefined
  }

  /** Calls back once at the next `publish` or `wake`; the returned function cancels. */
  onNext(callback: () => void): () => void {
    this.#wakeups.add(callback)
    return () => this.#wakeups.delete(callback)
  }

  wake(): void {
    const callbacks = [...this.#wakeups]
    this.#wakeups.clear()
    for (const callback of callbacks) callback()
  }

  #clear(): void {
    this.#batches = []
    this.#bytes = 0
  }
}
