import type { Stream } from '../../src/api/stream.ts'
import type { RecordInput } from '../../src/model/append-input.ts'
import { isStreamMissing } from '../../src/model/errors.ts'
import { trimRecord } from '../../src/model/record.ts'
import { codeOf } from '../../src/sync/failures.ts'
import {
  EMPTY_SCAN,
  type FoldSnapshot,
  recordsOfSnapshot,
  type SnapshotPart,
  scanSnapshots,
  snapshotPartOf,
} from '../../src/sync/fold-snapshot.ts'

/** The attempts at a snapshot while other folds store theirs at the same time. */
const ATTEMPTS_MAX = 3
/** The last part of a snapshot and the trim behind it. */
const NEWEST = { tailOffset: 2 }

/**
 * The snapshots of a fold in a stream of their own. Each append is conditional on the tail, so of several
 * tabs that store snapshots at once, one completes its own. The last part comes in one batch with a trim of
 * everything before the snapshot, so that a complete snapshot is in the stream at any time.
 */
export class SnapshotStore {
  readonly #stream: Stream
  /** The tail after the snapshots that were loaded or stored last; undefined if it must be looked up. */
  #end: number | undefined

  constructor(stream: Stream) {
    this.#stream = stream
  }

  /** Resolves to the complete snapshots, from the newest to the oldest. */
  async load(signal: AbortSignal): Promise<readonly FoldSnapshot[]> {
    let scan = EMPTY_SCAN
    try {
      const read = this.#stream.read({}, { as: 'bytes', signal })
      for await (const { records } of read.batches()) scan = scanSnapshots(scan, records)
      // An empty stream may have a tail.
      this.#end = scan.end === 0 ? undefined : scan.end
    } catch (error) {
      if (!isStreamMissing(error)) throw error
      this.#end = 0
    }
    return scan.complete
  }

  /**
   * Stores a snapshot. Resolves to the position of the newest snapshot: another one if `isSuperseded` says
   * that it is new enough.
   */
  async save(
    snapshot: FoldSnapshot,
    isSuperseded: (other: SnapshotPart) => boolean,
    signal: AbortSignal,
  ): Promise<number> {
    const records = recordsOfSnapshot(snapshot)
    let isContended = false
    let end = this.#end
    // Others may store theirs before the next one.
    this.#end = undefined
    for (let attempt = 1; ; attempt++) {
      if (end === undefined) {
        const [tail, newest] = await this.#examine(signal)
        end = tail
        // An incomplete snapshot was left by a crash, unless another fold is about to complete it.
        const isUsable = newest !== undefined && (isContended || newest.index === newest.count - 1)
        if (isUsable && isSuperseded(newest)) return newest.position
      }
      try {
        await this.#append(records, end, signal)
        return snapshot.position
      } catch (error) {
        end = undefined
        isContended = codeOf(error) === 'seq_num_mismatch'
        if (!isContended || attempt === ATTEMPTS_MAX) throw error
      }
    }
  }

  async #append(records: readonly RecordInput[], start: number, signal: AbortSignal): Promise<void> {
    let end = start
    for (const [index, record] of records.entries()) {
      const isLast = index === records.length - 1
      const batch = isLast && start > 0 ? [record, trimRecord(start)] : [record]
      const ack = await this.#stream.append(batch, { matchSeqNum: end, signal })
      end = ack.end.seqNum
    }
    this.#end = end
  }

  /** Resolves to the tail, and to the part of a snapshot that was stored last. */
  async #examine(signal: AbortSignal): Promise<readonly [tail: number, newest?: SnapshotPart | undefined]> {
    try {
      const { records, tail } = await this.#stream.readBatch(NEWEST, { as: 'bytes', signal })
      const { seqNum } = tail ?? (await this.#stream.checkTail({ signal }))
      return [seqNum, records.map(snapshotPartOf).findLast((part) => part !== undefined)]
    } catch (error) {
      if (!isStreamMissing(error)) throw error
      return [0]
    }
  }
}
